package registry

import (
	"net"
	"testing"

	"github.com/carton-oci/carton-oci/internal/registrytest"
)

// The first question finds out the scheme: nothing else is asked before it.
func TestTheFirstQuestionTellsTheScheme(t *testing.T) {
	for name, conf := range map[string]registrytest.Config{
		"plain": {}, "TLS": {TLS: true}, "HTTP/2": {TLS: true, HTTP2: true},
		"plain, with a login": {Auth: registrytest.Auth{Users: map[string]string{"u": "p"}}},
		"TLS, with a login":   {TLS: true, Auth: registrytest.Auth{Users: map[string]string{"u": "p"}}},
	} {
		t.Run(name, func(t *testing.T) {
			reg := registrytest.New(t, conf)
			opts := Options{Credential: static("u", "p")}
			if conf.TLS {
				opts.CAFile = reg.CAFile(t)
			}
			repo := dial(t, reg, "org/m", opts)
			desc := reg.AddManifest("org/m", "application/vnd.oci.image.manifest.v1+json", []byte(`{"schemaVersion":2}`), "1")
			for range 2 {
				if got, err := repo.Resolve(t.Context(), "1"); err != nil || got.Digest != desc.Digest {
					t.Fatalf("got %v, %v", got, err)
				}
			}
			if got := reg.Count("", "/v2/") - reg.Count("", "/manifests/"); got != 0 {
				t.Errorf("%d questions were asked besides", got)
			}
			if rec := reg.Requests()[0]; rec.Header.Get("Authorization") != "" {
				t.Error("credentials were sent before the scheme was known")
			}
			if got := repo.host.known(); reg.URL[:len(got)+1] != got+":" {
				t.Errorf("got the scheme %q for %s", got, reg.URL)
			}
		})
	}
	t.Run("nobody there", func(t *testing.T) {
		repo := dial(t, registrytest.New(t, registrytest.Config{}), "org/m", Options{})
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		repo.host = repo.client.endpoint(l.Addr().String())
		l.Close()
		_, err = repo.Resolve(t.Context(), "1")
		checkError(t, err, nil, "connection refused", "")
	})
	t.Run("TLS is not left for a certificate's sake", func(t *testing.T) {
		reg := registrytest.New(t, registrytest.Config{TLS: true})
		_, err := dial(t, reg, "org/m", Options{}).Resolve(t.Context(), "1")
		checkError(t, err, nil, "certificate signed by unknown authority", "registry.Options.CAFile")
		if n := len(reg.Requests()); n != 0 {
			t.Errorf("%d requests arrived", n)
		}
	})
}
