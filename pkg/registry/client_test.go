package registry

import (
	"bytes"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/internal/stall"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// TestScheme: a loopback host is asked once which scheme it speaks, without
// credentials; any other speaks https.
func TestScheme(t *testing.T) {
	ctx := t.Context()
	t.Run("plain", func(t *testing.T) {
		reg := registrytest.New(t, registrytest.Config{Auth: registrytest.Auth{Users: map[string]string{"u": "p"}}})
		repo := dial(t, reg, "org/m", Options{Credential: static("u", "p")})
		if got := repo.BlobURL(testDigest); !strings.HasPrefix(got, "https://") {
			t.Errorf("before anything was asked, BlobURL = %q", got)
		}
		desc := reg.AddBlob("org/m", []byte("x"))
		for range 3 {
			if _, err := repo.Stat(ctx, desc.Digest); err != nil {
				t.Fatal(err)
			}
		}
		if got := repo.BlobURL(desc.Digest); got != reg.URL+"/v2/org/m/blobs/"+desc.Digest.String() {
			t.Errorf("BlobURL = %q", got)
		}
		asked := 0
		for _, rec := range reg.Requests() {
			if rec.Path == "/v2/" {
				asked++
				if rec.Header.Get("Authorization") != "" {
					t.Error("credentials were sent before the scheme was known")
				}
			}
		}
		if asked != 1 {
			t.Errorf("asked for the scheme %d times, want once", asked)
		}
	})
	t.Run("TLS", func(t *testing.T) {
		reg := registrytest.New(t, registrytest.Config{TLS: true})
		repo := dial(t, reg, "org/m", Options{CAFile: reg.CAFile(t)})
		desc := reg.AddBlob("org/m", []byte("x"))
		if _, err := repo.Stat(ctx, desc.Digest); err != nil {
			t.Fatal(err)
		}
		if got := repo.BlobURL(desc.Digest); got != reg.URL+"/v2/org/m/blobs/"+desc.Digest.String() {
			t.Errorf("BlobURL = %q", got)
		}
	})
	t.Run("TLS is not left for a certificate's sake", func(t *testing.T) {
		reg := registrytest.New(t, registrytest.Config{TLS: true})
		repo := dial(t, reg, "org/m", Options{})
		_, err := repo.Stat(ctx, testDigest)
		checkError(t, err, nil, "certificate signed by unknown authority", "registry.Options.CAFile")
		if n := len(reg.Requests()); n != 0 {
			t.Errorf("%d requests arrived", n)
		}
	})
	t.Run("insecure", func(t *testing.T) {
		reg := registrytest.New(t, registrytest.Config{TLS: true})
		repo := dial(t, reg, "org/m", Options{Insecure: true})
		if _, err := repo.Stat(ctx, reg.AddBlob("org/m", nil).Digest); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("plain only", func(t *testing.T) {
		reg := registrytest.New(t, registrytest.Config{})
		repo := dial(t, reg, "org/m", Options{PlainHTTP: true})
		if _, err := repo.Stat(ctx, reg.AddBlob("org/m", nil).Digest); err != nil {
			t.Fatal(err)
		}
		if n := len(reg.Requests()); n != 1 {
			t.Errorf("got %d requests, want 1", n)
		}
	})
	t.Run("plain to a TLS server", func(t *testing.T) {
		reg := registrytest.New(t, registrytest.Config{TLS: true})
		repo := dial(t, reg, "org/m", Options{PlainHTTP: true})
		_, err := repo.Resolve(ctx, "1")
		checkError(t, err, nil, "400", "leave out registry.Options.PlainHTTP")
	})
	t.Run("nobody there", func(t *testing.T) {
		reg := registrytest.New(t, registrytest.Config{})
		repo := dial(t, reg, "org/m", Options{})
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		repo.host = repo.client.endpoint(l.Addr().String())
		l.Close()
		_, err = repo.Stat(ctx, testDigest)
		checkError(t, err, nil, "connection refused", "")
		if strings.Contains(err.Error(), "gave up") {
			t.Errorf("%v: a host that never answered was asked again", err)
		}
	})
}

// TestTLSHint: without TLS at the other end, and no loopback
// host to make up for it, the hint says what to do.
func TestTLSHint(t *testing.T) {
	reg := registrytest.New(t, registrytest.Config{})
	repo := dial(t, reg, "org/m", Options{})
	repo.host.scheme = "https" // as of a host that is not loopback
	_, err := repo.Stat(t.Context(), testDigest)
	checkError(t, err, nil, "server gave HTTP response to HTTPS client", "registry.Options.PlainHTTP")
}

// TestProtocols: metadata goes over HTTP/2 where there is any, blobs never do but for
// a few bytes of one.
func TestProtocols(t *testing.T) {
	reg := registrytest.New(t, registrytest.Config{TLS: true, HTTP2: true})
	repo := dial(t, reg, "org/m", Options{CAFile: reg.CAFile(t)})
	b := random(1, 1_000_000)
	desc := describeBytes(b)
	if err := repo.Push(t.Context(), layer(desc, opener(b)), layout.Watch{}); err != nil {
		t.Fatal(err)
	}
	if _, err := repo.Stat(t.Context(), desc.Digest); err != nil {
		t.Fatal(err)
	}
	rc, err := repo.OpenRange(t.Context(), desc, 0, -1)
	readAll(t, rc, err)
	rc, err = repo.OpenRange(t.Context(), desc, 999_000, 1000)
	readAll(t, rc, err)
	for _, rec := range reg.Requests() {
		want := "HTTP/2.0"
		large := rec.Header.Get("Range") == ""
		if rec.Method == http.MethodPut || rec.Method == http.MethodGet && strings.Contains(rec.Path, blobs) && large {
			want = "HTTP/1.1"
		}
		if rec.Proto != want {
			t.Errorf("%s %s came by %s, want %s", rec.Method, rec.Path, rec.Proto, want)
		}
	}
}

// TestDockerHub: what people call docker.io has its API elsewhere.
func TestDockerHub(t *testing.T) {
	ref, err := ParseReference("docker.io/m:1")
	if err != nil {
		t.Fatal(err)
	}
	repo := repositoryAt(t, ref.Registry, ref.Repository, Options{})
	if got, want := repo.BlobURL(testDigest), "https://registry-1.docker.io/v2/library/m/blobs/"+testDigest; got != want {
		t.Errorf("BlobURL = %q, want %q", got, want)
	}
	if got := repo.Name(); got != "docker.io/library/m" {
		t.Errorf("Name = %q", got)
	}
	for _, e := range []*Error{{Host: hubAPI, Status: 401}, {Host: "auth.docker.io", Status: 401, token: true}} {
		checkError(t, repo.host.advise(e), ErrUnauthorized, "401", "registry.Client.Login docker.io")
	}
}

// TestMetadataStalls: an answer that stops in the middle is asked for again.
func TestMetadataStalls(t *testing.T) {
	policy := quick
	policy.Stall = time.Second
	for name, effect := range map[string]func(*registrytest.Registry) registrytest.Effect{
		"headers": func(r *registrytest.Registry) registrytest.Effect { return r.Hang },
		"body":    func(r *registrytest.Registry) registrytest.Effect { return r.StallOut(10) },
	} {
		t.Run(name, func(t *testing.T) {
			policy := policy
			reg := registrytest.New(t, registrytest.Config{})
			desc, content := imageManifest(t, describeBytes(nil))
			reg.AddManifest("org/m", desc.MediaType, content, "1")
			repo := dial(t, reg, "org/m", Options{Policy: policy})
			reg.Break(registrytest.Fault{Methods: "GET", Path: manifests, Times: 2, Effect: effect(reg)})
			if got, err := repo.FetchManifest(t.Context(), desc); err != nil || !bytes.Equal(got, content) {
				t.Errorf("got %q, %v", got, err)
			}
			reg.Break(registrytest.Fault{Methods: "GET", Path: manifests, Times: -1, Effect: effect(reg)})
			policy.Attempts = 2
			repo = dial(t, reg, "org/m", Options{Policy: policy})
			_, err := repo.FetchManifest(t.Context(), desc)
			checkError(t, err, stall.ErrStalled, reg.Host+" has stalled", "")
		})
	}
}

// roundTrip is a transport.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
