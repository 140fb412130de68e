package registry

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/carton-oci/carton-oci/internal/httprange"
	"github.com/carton-oci/carton-oci/internal/registrytest"
)

// challenge answers with a challenge that names a token server.
func challenge(realm string) *registrytest.Fault {
	return &registrytest.Fault{Path: "/v2/", Times: -1, Effect: registrytest.Answer(401, "", "WWW-Authenticate", `Bearer realm="`+realm+`",service="x"`)}
}

// TestTokenServers: who a registry names as its token server gets the user's
// password. It is asked over TLS and at a public address, whatever its name looks
// like to who judges names: full-width and circled digits, ideographic full stops
// become an address on the way to the connection.
func TestTokenServers(t *testing.T) {
	var asked atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer other.Close()
	port := other.URL[strings.LastIndexByte(other.URL, ':'):]
	for name, realm := range map[string]string{
		"full-width digits":      "http://127.0.0.１" + port + "/token",
		"circled digits":         "http://①②⑦.0.0.①" + port + "/token",
		"ideographic full stops": "http://127。0。0。1" + port + "/token",
		"with TLS":               "https://127.0.0.１" + port + "/token",
		"a number":               "https://2130706433" + port + "/token",
		"without TLS":            "http://token.example.invalid/token",
		"NAT64":                  "https://[64:ff9b::7f00:1]" + port + "/token",
		"IPv4-mapped":            "https://[::ffff:127.0.0.1]" + port + "/token",
		"metadata of Azure":      "https://168.63.129.16/token",
	} {
		t.Run(name, func(t *testing.T) {
			reg := registrytest.New(t, registrytest.Config{})
			repo := dial(t, reg, "org/m", Options{PlainHTTP: true, Credential: static("u", "correct-horse")})
			reg.Break(*challenge(realm))
			_, err := repo.Resolve(t.Context(), "1")
			if err == nil || asked.Load() > 0 {
				t.Errorf("got %v, and %d requests where they don't belong", err, asked.Load())
			}
			if n := len(reg.Requests()); n > 2 {
				t.Errorf("the registry was asked %d times, want no more after that answer", n)
			}
		})
	}
}

// TestTokenServerByDNS: a name that is judged by one answer of DNS and connected to
// by another is judged by the second.
func TestTokenServerByDNS(t *testing.T) {
	var asked atomic.Int64
	other := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer other.Close()
	address := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
	c, err := NewClient(Options{Policy: quick, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	g := &tokenGuard{registry: c.meta, elsewhere: c.tokens, host: &endpoint{host: "registry.example"}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/token", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := g.RoundTrip(req)
	if err == nil {
		resp.Body.Close()
	}
	if !errors.Is(err, httprange.ErrNotAllowed) || asked.Load() > 0 {
		t.Errorf("got %v and %d requests, want ErrNotAllowed", err, asked.Load())
	}
}

// TestUnreadableRealm: the same answer would get the same judgement.
func TestUnreadableRealm(t *testing.T) {
	for _, realm := range []string{"http://[::1/token", "https://%zz/", "ftp://h/", "https://a b/"} {
		reg := registrytest.New(t, registrytest.Config{})
		repo := dial(t, reg, "org/m", Options{Policy: quick})
		desc := reg.AddBlob("org/m", []byte("x"))
		reg.Break(*challenge(realm))
		_, err := repo.OpenRange(t.Context(), desc, 0, -1)
		if n := len(reg.Requests()); err == nil || n > 2 {
			t.Errorf("%s: got %v after %d requests, want an error after one", realm, err, n)
		}
	}
}

// TestRedirectToThisMachine: a registry that is not on this machine redirects
// neither to it nor to what answers this machine alone.
func TestRedirectToThisMachine(t *testing.T) {
	c, err := NewClient(Options{Policy: quick})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var asked atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer other.Close()
	far, here := "http://10.1.2.3:5000/v2/m/blobs/x", "http://127.0.0.1:5000/v2/m/blobs/x"
	for _, test := range []struct {
		from, to string
		allowed  bool
	}{
		{far, other.URL, false},
		{far, strings.Replace(other.URL, "127.0.0.1", "localhost", 1), false},
		{far, strings.Replace(other.URL, "127.0.0.1", "127.0.0.１", 1), false},
		{far, strings.Replace(other.URL, "127.0.0.1", "[::ffff:127.0.0.1]", 1), false},
		{far, strings.Replace(other.URL, "127.0.0.1", "2130706433", 1), false},
		{far, "http://169.254.169.254/latest/meta-data/", false},
		{far, "http://168.63.129.16/", false},
		{far, "http://[fe80::1]/", false},
		{here, other.URL, true},
	} {
		for _, rt := range []http.RoundTripper{c.meta, c.blob} {
			before := asked.Load()
			first, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, test.from, nil)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, test.to, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Response = &http.Response{Request: first}
			resp, err := rt.RoundTrip(req)
			if err == nil {
				resp.Body.Close()
			}
			if (err == nil) != test.allowed || asked.Load() > before != test.allowed || err != nil && !errors.Is(err, httprange.ErrNotAllowed) {
				t.Errorf("%s to %s: got %v", test.from, test.to, err)
			}
		}
	}
}

// TestNameOfThisMachineElsewhere: ".localhost" is this machine by convention only.
// Where DNS says otherwise, nothing goes there without TLS.
func TestNameOfThisMachineElsewhere(t *testing.T) {
	if err := controlLoopback("tcp4", "127.0.0.2:5000", nil); err != nil {
		t.Error(err)
	}
	if err := controlLoopback("tcp6", "[::1]:5000", nil); err != nil {
		t.Error(err)
	}
	if err := controlLoopback("tcp4", "192.0.2.1:5000", nil); !errors.Is(err, ErrUnsafe) {
		t.Errorf("got %v, want ErrUnsafe", err)
	}
	// Both ways of asking without TLS come through there.
	c, err := NewClient(Options{Policy: quick})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, rt := range []http.RoundTripper{c.meta, c.blob} {
		g := rt.(*redirectGuard)
		for _, plain := range []bool{false, true} {
			c.opts.PlainHTTP = plain
			var guarded any
			look := &redirectGuard{client: c, named: roundTrip(func(req *http.Request) (*http.Response, error) {
				guarded = req.Context().Value(plainHere{})
				return nil, errors.New("enough")
			}), others: g.others}
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://reg.localhost:5000/v2/", nil)
			if _, err := look.RoundTrip(req); err == nil { //nolint:bodyclose // there is none
				t.Error("the error is lost")
			}
			if (guarded != nil) == plain {
				t.Errorf("--plain-http %v: guarded: %v", plain, guarded)
			}
		}
	}
	ctx := context.WithValue(t.Context(), plainHere{}, true)
	if _, err := c.dial(ctx, "tcp", "192.0.2.1:9"); !errors.Is(err, ErrUnsafe) {
		t.Errorf("got %v, want ErrUnsafe", err)
	}
}

// TestUnreadableProxy: net/http would connect directly, and say nothing.
func TestUnreadableProxy(t *testing.T) {
	for value, ok := range map[string]bool{
		"": true, "http://p:3128": true, "p:3128": true, "https://p": true, "socks5://u:p@p:1080": true, "socks5h://p": true,
		"http://u:correct%horse@p:3128": false, "http://[::1:3128": false, "http://p:port": false, "ftp://p:3128": false, "http://": false, "://p": false,
	} {
		t.Setenv("HTTP_PROXY", "")
		t.Setenv("https_proxy", "")
		t.Setenv("HTTPS_PROXY", value)
		_, err := NewClient(Options{})
		if (err == nil) != ok || err != nil && (!strings.Contains(err.Error(), "HTTPS_PROXY") || strings.Contains(err.Error(), "horse")) {
			t.Errorf("%q: got %v, want it read: %v", value, err, ok)
		}
	}
}

// TestNoReferer: the address that a redirect came from may be presigned.
func TestNoReferer(t *testing.T) {
	var referers []string
	second := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		referers = append(referers, req.Header["Referer"]...)
		_, _ = w.Write([]byte("x"))
	}))
	defer second.Close()
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		referers = append(referers, req.Header["Referer"]...)
		http.Redirect(w, req, second.URL+"/y", http.StatusTemporaryRedirect)
	}))
	defer first.Close()
	reg := registrytest.New(t, registrytest.Config{})
	repo := dial(t, reg, "org/m", Options{})
	desc := reg.AddBlob("org/m", []byte("x"))
	reg.Break(registrytest.Fault{Methods: "GET", Path: blobs, Times: -1, Effect: registrytest.Answer(307, "", "Location", first.URL+"/x?X-Amz-Signature=0123456789")})
	rc, err := repo.OpenRange(t.Context(), desc, 0, -1)
	if got := readAll(t, rc, err); string(got) != "x" {
		t.Fatalf("got %q", got)
	}
	resp, err := repo.client.WebClient().Get(first.URL + "/m.carton?X-Amz-Signature=0123456789") //nolint:noctx // a test
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if len(referers) > 0 {
		t.Errorf("got %q, want none", referers)
	}
}

// TestRepeatedSecrets: a registry, and its token server, that say what they were
// sent are quoted without it, in whatever place and form.
func TestRepeatedSecrets(t *testing.T) {
	const password = "correct horse/battery+"
	both := base64.StdEncoding.EncodeToString([]byte("u:" + password))
	for _, bearer := range []bool{false, true} {
		for name, effect := range map[string]registrytest.Effect{
			"error": func(w http.ResponseWriter, req *http.Request, _ http.Handler) {
				w.Header().Set("Content-Type", "text/plain")
				w.WriteHeader(http.StatusBadRequest)
				_, _ = w.Write([]byte(req.Header.Get("Authorization") + " is " + password + " " + url.QueryEscape(password)))
			},
			"digest": func(w http.ResponseWriter, req *http.Request, _ http.Handler) {
				w.Header().Set("Docker-Content-Digest", req.Header.Get("Authorization")+password)
				w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			},
			"location": func(w http.ResponseWriter, req *http.Request, _ http.Handler) {
				_, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
				w.Header().Set("Location", "ftp://"+url.PathEscape(token)+"/"+url.PathEscape(password))
				w.WriteHeader(http.StatusTemporaryRedirect)
			},
		} {
			reg := registrytest.New(t, registrytest.Config{Auth: registrytest.Auth{Users: map[string]string{"u": password}, Bearer: bearer}})
			repo := dial(t, reg, "org/m", Options{Policy: quick, Credential: static("u", password)})
			desc := reg.AddBlob("org/m", []byte("x"))
			if _, err := repo.Stat(t.Context(), desc.Digest); err != nil {
				t.Fatal(err)
			}
			var secrets []string
			for _, rec := range reg.Requests() {
				if _, token, ok := strings.Cut(rec.Header.Get("Authorization"), " "); ok {
					secrets = append(secrets, token, url.PathEscape(token))
				}
			}
			secrets = append(secrets, password, both, url.PathEscape(password), url.QueryEscape(password))
			reg.Break(registrytest.Fault{Path: "/v2/org/", Times: -1, Effect: effect})
			_, err := repo.Resolve(t.Context(), "1")
			if err == nil {
				t.Errorf("%s: no error", name)
				continue
			}
			for _, s := range secrets {
				if strings.Contains(err.Error(), s) {
					t.Errorf("%s, bearer %v: the error has the secret %q: %v", name, bearer, s, err)
				}
			}
		}
	}
}
