package registry

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// TestRedirectDowngrade: what was asked by https does not come by http.
func TestRedirectDowngrade(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the redirect was followed")
	}))
	defer plain.Close()
	reg := registrytest.New(t, registrytest.Config{TLS: true})
	repo := dial(t, reg, "org/m", Options{CAFile: reg.CAFile(t)})
	desc := reg.AddBlob("org/m", []byte("x"))
	reg.Break(registrytest.Fault{Methods: "GET|HEAD", Path: blobs, Times: -1, Effect: registrytest.Answer(307, "", "Location", plain.URL)})
	_, err := repo.OpenRange(t.Context(), desc, 0, -1)
	checkError(t, err, ErrUnsafe, "from https to http", "")
	_, err = repo.Stat(t.Context(), desc.Digest)
	checkError(t, err, ErrUnsafe, "from https to http", "")
}

// TestRedirectLeaks: neither Basic nor Bearer credentials leave the origin, not
// even for another port of the same host, and not on the way back either.
func TestRedirectLeaks(t *testing.T) {
	for _, bearer := range []bool{false, true} {
		var reg *registrytest.Registry
		seen := 0
		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			seen++
			if req.Header.Get("Authorization") != "" {
				t.Errorf("bearer %v: another port was sent credentials", bearer)
			}
			http.Redirect(w, req, reg.URL+"/back", http.StatusTemporaryRedirect)
		}))
		reg = registrytest.New(t, registrytest.Config{Auth: registrytest.Auth{Users: map[string]string{"u": "p"}, Bearer: bearer}})
		repo := dial(t, reg, "org/m", Options{Credential: static("u", "p")})
		desc := reg.AddBlob("org/m", []byte("x"))
		if _, err := repo.Stat(t.Context(), desc.Digest); err != nil { // the token is known from here
			t.Fatal(err)
		}
		reg.Break(registrytest.Fault{Path: blobs, Times: -1, Effect: registrytest.Answer(307, "", "Location", other.URL+"/x")})
		if _, err := repo.OpenRange(t.Context(), desc, 0, -1); !errors.Is(err, layout.ErrNotFound) {
			t.Errorf("got %v, want what %s/back answers", err, reg.URL)
		}
		for _, rec := range reg.Requests() {
			if rec.Path == "/back" && rec.Header.Get("Authorization") != "" {
				t.Errorf("bearer %v: credentials came back after they had gone", bearer)
			}
		}
		if seen == 0 {
			t.Error("the redirect was not followed")
		}
		other.Close()
	}
}

// TestCDNRefuses: what the place that a registry redirects to answers is not
// for want of a login.
func TestCDNRefuses(t *testing.T) {
	reg := registrytest.New(t, registrytest.Config{Quirks: registrytest.Quirks{CDN: true}})
	repo := dial(t, reg, "org/m", Options{})
	desc := reg.AddBlob("org/m", []byte("x"))
	reg.Break(registrytest.Fault{Path: "/cdn/", Times: -1, Effect: registrytest.Answer(403, "<Error/>", "Content-Type", "application/xml")})
	_, err := repo.OpenRange(t.Context(), desc, 0, -1)
	checkError(t, err, ErrDenied, "403 Forbidden", reg.Host+" redirects to ")
}

// TestRedirectSubdomain: net/http would keep Authorization for a subdomain.
func TestRedirectSubdomain(t *testing.T) {
	reg := registrytest.New(t, registrytest.Config{Auth: registrytest.Auth{Users: twoUsers}})
	// Every name is the test's registry.
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", reg.Host)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := NewClient(Options{PlainHTTP: true, HTTPClient: &http.Client{Transport: transport}, Credential: static("u", "p"), Policy: quick})
	if err != nil {
		t.Fatal(err)
	}
	repo, err := c.Repository("registry.test", "org/m")
	if err != nil {
		t.Fatal(err)
	}
	desc := reg.AddBlob("org/m", []byte("x"))
	if _, err := repo.Stat(t.Context(), desc.Digest); err != nil {
		t.Fatal(err)
	}
	reg.Break(registrytest.Fault{Methods: "GET", Path: blobs, Times: -1, Effect: registrytest.Answer(307, "", "Location", "http://cdn.registry.test/elsewhere")})
	if _, err := repo.OpenRange(t.Context(), desc, 0, -1); err == nil {
		t.Fatal("got no error")
	}
	n := 0
	for _, rec := range reg.Requests() {
		if rec.Path == "/elsewhere" {
			n++
			if rec.Header.Get("Authorization") != "" {
				t.Error("a subdomain was sent credentials")
			}
		}
	}
	if n != 1 {
		t.Errorf("the redirect was followed %d times, want once", n)
	}
}

// TestUploadRedirect: a body follows redirects within the registry only.
func TestUploadRedirect(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		t.Errorf("%s %s went to another host", req.Method, req.URL)
	}))
	defer elsewhere.Close()
	for name, tt := range map[string]struct {
		status int
		to     string
		says   string
	}{
		"another host":    {307, elsewhere.URL, "another host"},
		"becomes a GET":   {302, "/v2/", "GET of PUT"},
		"another scheme":  {308, "ftp://127.0.0.1/", "ftp"},
		"becomes a GET 2": {303, elsewhere.URL, "GET of PUT"},
	} {
		t.Run(name, func(t *testing.T) {
			reg := registrytest.New(t, registrytest.Config{})
			repo := dial(t, reg, "org/m", Options{})
			reg.Break(put(registrytest.Answer(tt.status, "", "Location", tt.to)))
			err := repo.Push(t.Context(), layer(describeBytes([]byte("x")), opener([]byte("x"))), layout.Watch{})
			checkError(t, err, ErrUnsafe, tt.says, "")
			if got := reg.Count("PUT", ""); got != 1 {
				t.Errorf("got %d PUTs, want 1: this does not pass", got)
			}
		})
	}
	t.Run("within", func(t *testing.T) {
		reg := registrytest.New(t, registrytest.Config{})
		repo := dial(t, reg, "org/m", Options{})
		reg.Break(put(func(w http.ResponseWriter, req *http.Request, _ http.Handler) {
			http.Redirect(w, req, req.URL.String()+"&again=1", http.StatusTemporaryRedirect)
		}))
		b := random(1, 1<<20)
		if err := repo.Push(t.Context(), layer(describeBytes(b), opener(b)), layout.Watch{}); err != nil {
			t.Fatal(err)
		}
	})
}
