package hub

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/carton-oci/carton-oci/internal/httprange"
	"github.com/carton-oci/carton-oci/internal/localfile"
	"github.com/carton-oci/carton-oci/internal/secret"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// DefaultEndpoint is the hub that is asked where nothing else is said.
const DefaultEndpoint = "https://huggingface.co"

// MaxWait is the longest that a hub may ask to wait because of its limits, which are
// counted in windows of five minutes.
// https://huggingface.co/docs/hub/rate-limits
const MaxWait = 6 * time.Minute

// Options say which hub is asked, and as whom.
type Options struct {
	// Endpoint is the hub's address, which may have a path and a user name; "" is
	// [DefaultEndpoint].
	Endpoint string
	// Token is a user's access token; "" is anonymous.
	Token string
	// AllowHTTP sends a token by plain http to another machine, too.
	AllowHTTP bool
	// Offline refuses to ask anything.
	Offline bool
	// Cache is the folder in which the hub's own tools keep what they have fetched: a
	// large file that is there is read there, and checked as one that is sent. "" is
	// none.
	Cache string
	// Web sends the requests, and follows redirects; registry.Client.WebClient makes
	// one. Nil is http.DefaultClient, which has neither this module's limits nor its
	// guard of private addresses.
	Web *http.Client
	// Policy says how long and how often to try. A MaxRetryAfter of 0 is [MaxWait].
	Policy httprange.Policy
	// UserAgent is how the client calls itself; "" is "carton-oci".
	UserAgent string
}

// Page is the address of a repository's page.
func (o Options) Page(repository string) (string, error) {
	if o.Token = ""; o.Endpoint == "" {
		o.Endpoint = DefaultEndpoint
	}
	o.AllowHTTP = true // nothing is sent
	endpoint, _, err := readEndpoint(o)
	if err != nil {
		return "", err
	}
	return (&Client{endpoint: endpoint}).url(segments(repository)...).String(), nil
}

// maxTokenBytes is the largest file of a token.
const maxTokenBytes = 4 << 10

// Environment returns the options that the hub's own tools would take from the
// environment: HF_ENDPOINT; HF_TOKEN, or else the file that "hf auth login" writes,
// $HF_TOKEN_PATH or token in $HF_HOME; HF_HUB_CACHE, or else hub in $HF_HOME;
// HF_HUB_OFFLINE.
// https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables
func Environment() (Options, error) {
	o := Options{
		Endpoint: strings.TrimSpace(os.Getenv("HF_ENDPOINT")),
		Offline:  isSet("HF_HUB_OFFLINE") || isSet("TRANSFORMERS_OFFLINE"),
		Cache:    cacheFolder(),
	}
	secret.AddTyped(o.Endpoint)
	for _, name := range []string{"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"} {
		if o.Token = strings.TrimSpace(os.Getenv(name)); o.Token != "" {
			secret.Add(o.Token)
			return o, nil
		}
	}
	if isSet("HF_HUB_DISABLE_IMPLICIT_TOKEN") {
		return o, nil
	}
	b, err := localfile.Read(tokenFile(), maxTokenBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return o, nil
	}
	if err != nil {
		return o, fmt.Errorf("the hub's token: %w", err)
	}
	o.Token = strings.TrimSpace(string(b))
	secret.Add(o.Token)
	return o, nil
}

// isSet reads a variable as the hub's tools read theirs.
func isSet(name string) bool {
	switch strings.ToUpper(os.Getenv(name)) {
	case "1", "ON", "YES", "TRUE":
		return true
	}
	return false
}

// tokenFile is where "hf auth login" keeps the token.
func tokenFile() string {
	if name := os.Getenv("HF_TOKEN_PATH"); name != "" {
		return localfile.ExpandHome(name)
	}
	return filepath.Join(home(), "token")
}

// home is the folder of the hub's tools.
func home() string {
	if dir := os.Getenv("HF_HOME"); dir != "" {
		return localfile.ExpandHome(dir)
	}
	if dir := os.Getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "huggingface")
	}
	return localfile.ExpandHome("~/.cache/huggingface")
}

// readEndpoint reads the hub's address. What it says of a user becomes a header.
func readEndpoint(o Options) (endpoint *url.URL, authorization string, err error) {
	text := o.Endpoint
	if text == "" {
		text = DefaultEndpoint
	}
	secret.AddTyped(text)
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.RawQuery != "" ||
		u.Fragment != "" {
		return nil, "", hint.With(fmt.Errorf("the hub's address: got %q, want https://host", secret.Redact(text)),
			"HF_ENDPOINT is the hub's address")
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), strings.TrimRight(u.RawPath, "/")
	switch {
	case o.Token != "" && !httpToken(o.Token):
		return nil, "", errors.New("the hub's token holds characters that no token has")
	case o.Token != "":
		authorization = "Bearer " + o.Token
	case u.User != nil:
		password, _ := u.User.Password()
		secret.AddLogin(u.User.Username(), password)
		req := http.Request{Header: http.Header{}}
		req.SetBasicAuth(u.User.Username(), password)
		authorization = req.Header.Get("Authorization")
	}
	u.User = nil
	if authorization != "" && u.Scheme == "http" && !o.AllowHTTP && !httprange.IsLoopback(u.Hostname()) {
		err := fmt.Errorf("the hub %s is reached without TLS, and no token is sent so", u)
		return nil, "", hint.With(err, "want an https:// address in HF_ENDPOINT, or %s", hint.PlainHTTP)
	}
	return u, authorization, nil
}

// httpToken reports whether a header can carry a token.
func httpToken(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}
