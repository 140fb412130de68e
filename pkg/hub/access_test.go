package hub_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/hubtest"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/hub"
)

func TestWhoMayNotRead(t *testing.T) {
	h := hubtest.New(t, hubtest.Config{Token: token})
	for _, name := range []string{"org/m", "org/private", "org/gated", "org/disabled"} {
		h.Commit(name, hubtest.File{Path: "a", Content: "a"})
	}
	h.Private("org/private")
	h.Gate("org/gated")
	h.Disable("org/disabled")
	const other = "hf_ZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZ"
	for _, c := range []struct {
		repository, revision, token string
		want                        error
		text, hint                  string
	}{
		{"org/none", "", "", fs.ErrNotExist, "no such repository, or it is private", "HF_TOKEN"},
		{"org/none", "", token, fs.ErrNotExist, "no such repository", "spelling"},
		{"org/private", "", "", fs.ErrNotExist, "private", "hf auth login"},
		{"org/private", "", other, fs.ErrNotExist, "no such repository", "token"},
		{"org/gated", "", "", hub.ErrGated, "gated", "HF_TOKEN"},
		{"org/gated", "", other, hub.ErrGated, "gated", "ask for access"},
		{"org/disabled", "", "", fs.ErrPermission, "disabled", ""},
		{"org/m", "v9", "", fs.ErrNotExist, "no such revision", "hf:ORG/NAME@REV"},
	} {
		src, err := packed(t.Context(), client(t, h, c.token), c.repository, c.revision)
		if err == nil {
			src.Close()
		}
		hints := fmt.Sprint(hint.Of(err))
		if !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.text) || !strings.Contains(hints, c.hint) {
			t.Errorf("%s: got %v, hints %s; want %v, %q, %q", c.repository, err, hints, c.want, c.text, c.hint)
		}
		if c.token != "" && strings.Contains(fmt.Sprint(err, hints), c.token) {
			t.Errorf("%s: the error shows the token: %v", c.repository, err)
		}
	}
	src, err := packed(t.Context(), client(t, h, token), "org/gated", "")
	if err != nil {
		t.Fatal(err)
	}
	src.Close()
}

func TestNamesThatAreNone(t *testing.T) {
	h := hubtest.New(t, hubtest.Config{})
	for _, name := range []string{"", "..", "a/..", "a/b/c", "a/b?x", "a/%2e%2e", "-a"} {
		if _, err := client(t, h, "").Open(t.Context(), name, ""); err == nil || h.Calls.Load() > 0 {
			t.Errorf("%q: got %v after %d questions", name, err, h.Calls.Load())
		}
	}
	if _, err := client(t, h, "").Open(t.Context(), "a/b", "../x"); err == nil || h.Calls.Load() > 0 {
		t.Errorf("a revision with ..: got %v after %d questions", err, h.Calls.Load())
	}
}

// The token goes to the endpoint alone: by default not without TLS to anybody else,
// not to where an answer leads, and as the user name of an address only if there is
// no token.
func TestWhereTheTokenGoes(t *testing.T) {
	for endpoint, want := range map[string]bool{
		"https://hub.example": true, "http://localhost:1": true, "http://127.0.0.1:1": true, "http://[::1]:1": true, "http://a.localhost": true,
		"http://hub.example": false, "http://10.0.0.1": false, "ftp://hub.example": false, "hub.example": false, "https://hub.example?x=1": false,
	} {
		if _, err := hub.New(hub.Options{Endpoint: endpoint, Token: token}); (err == nil) != want {
			t.Errorf("%s: got %v, want it to be accepted: %v", endpoint, err, want)
		}
	}
	if _, err := hub.New(hub.Options{Endpoint: "http://hub.example", Token: token, AllowHTTP: true}); err != nil {
		t.Errorf("where plain HTTP is allowed: %v", err)
	}
	if _, err := hub.New(hub.Options{Endpoint: "http://hub.example"}); err != nil {
		t.Errorf("without a token: %v", err)
	}
	if _, err := hub.New(hub.Options{Token: "hf_a\r\nX: y"}); err == nil || strings.Contains(err.Error(), "hf_a") {
		t.Errorf("a token of two lines: got %v", err)
	}
	h := hubtest.New(t, hubtest.Config{})
	var got []string
	h.Hook = func(_ http.ResponseWriter, r *http.Request) bool {
		user, password, _ := r.BasicAuth()
		got = append(got, user+":"+password)
		return false
	}
	h.Commit("org/m", hubtest.File{Path: "a.bin", Content: "a", Large: true})
	c, err := hub.New(hub.Options{Endpoint: strings.Replace(h.URL, "http://", "http://u:hunter2@", 1), Policy: quick})
	if err != nil {
		t.Fatal(err)
	}
	src, err := packed(t.Context(), c, "org/m", "")
	if err != nil {
		t.Fatal(err)
	}
	src.Close()
	if len(got) < 4 || got[0] != "u:hunter2" || got[len(got)-1] != ":" || h.Leaked.Load() > 0 {
		t.Errorf("the hosts were sent %q", got)
	}
}

// Where no hub answers, what is said is where its address comes from.
func TestAHubThatIsNotThere(t *testing.T) {
	h := hubtest.New(t, hubtest.Config{})
	h.Commit("org/m", hubtest.File{Path: "a", Content: "a"})
	open := func(o hub.Options) string {
		o.Policy = quick
		c, err := hub.New(o)
		if err == nil {
			_, err = c.Open(t.Context(), "org/m", "")
		}
		if err == nil {
			t.Error("got no error")
		}
		return fmt.Sprint(err, hint.Of(err))
	}
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	nameless := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "hub.example", IsNotFound: true}}
	}}}
	for want, o := range map[string]hub.Options{
		"HF_ENDPOINT names the hub":     {Endpoint: "http://127.0.0.1:1"},
		"HF_ENDPOINT is the hub":        {Endpoint: "hub.example"},
		"HTTPS_PROXY or HTTP_PROXY":     {Endpoint: "http://hub.example", Web: behind("http://127.0.0.1:1")},
		"registry.Options.CAFile":       {Endpoint: secure.URL},
		"no such repository":            {Endpoint: h.URL + "/else"},
		"such host [HF_ENDPOINT names ": {Endpoint: "http://hub.example", Web: nameless},
	} {
		if got := open(o); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %q", o.Endpoint, got, want)
		}
	}
}

// behind is a client behind a proxy.
func behind(proxy string) *http.Client {
	u, _ := url.Parse(proxy)
	return &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(u)}}
}

func TestEnvironment(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{
		"HF_ENDPOINT", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_HOME", "XDG_CACHE_HOME", "HF_HUB_OFFLINE",
		"TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_IMPLICIT_TOKEN", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", home)
	write := func(name, text string) string {
		t.Helper()
		name = filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	want := func(what, token string) {
		t.Helper()
		if o, err := hub.Environment(); err != nil || o.Token != token {
			t.Errorf("%s: got the token %q, %v, want %q", what, o.Token, err, token)
		}
	}
	want("nothing", "")
	write(".cache/huggingface/token", "hf_default\n")
	want("the login's", "hf_default")
	t.Setenv("XDG_CACHE_HOME", filepath.Join(home, "xdg"))
	want("another cache folder", "")
	write("xdg/huggingface/token", "hf_xdg")
	want("another cache folder's", "hf_xdg")
	write("hf/token", "hf_home")
	t.Setenv("HF_HOME", "~/hf")
	want("HF_HOME", "hf_home")
	t.Setenv("HF_TOKEN_PATH", write("elsewhere", "hf_path"))
	want("HF_TOKEN_PATH", "hf_path")
	t.Setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")
	want("no file", "")
	t.Setenv("HF_TOKEN", " hf_variable\n")
	want("HF_TOKEN", "hf_variable")
	for _, c := range [][2]string{{"", filepath.Join(home, "hf/hub")}, {"HUGGINGFACE_HUB_CACHE", "/old"}, {"HF_HUB_CACHE", "~/cache"}} {
		want := c[1]
		if c[0] != "" {
			t.Setenv(c[0], c[1])
			want = strings.Replace(c[1], "~", home, 1)
		}
		if o, err := hub.Environment(); err != nil || o.Cache != want {
			t.Errorf("%s: got the cache %s, %v, want %s", c[0], o.Cache, err, want)
		}
	}
	t.Setenv("HF_HUB_OFFLINE", "yes")
	o, err := hub.Environment()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hub.New(o); err == nil || !strings.Contains(fmt.Sprint(hint.Of(err)), "cache") {
		t.Errorf("offline: got %v", err)
	}
	t.Setenv("HF_ENDPOINT", "https://user:hunter2@hub.example/a/")
	o, _ = hub.Environment()
	if page, err := o.Page("org/m"); err != nil || page != "https://hub.example/a/org/m" {
		t.Errorf("got the page %s, %v", page, err)
	}
}
