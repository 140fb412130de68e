package testregistry_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
)

var users = map[string]string{"ada": "lovelace"}

// repository returns oras-go's client, as another program would use it.
func repository(t *testing.T, s *testregistry.Server, name, user, password string) *remote.Repository {
	t.Helper()
	repo, err := remote.NewRepository(s.Host + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	repo.PlainHTTP = s.CAFile == ""
	client := &auth.Client{Client: s.Client(t)}
	if user != "" {
		client.Credential = auth.StaticCredential(s.Host, auth.Credential{Username: user, Password: password})
	}
	repo.Client = client
	return repo
}

func pushSomething(ctx context.Context, repo *remote.Repository, blob []byte) (ocispec.Descriptor, error) {
	layer := content.NewDescriptorFromBytes("application/octet-stream", blob)
	if err := repo.Push(ctx, layer, bytes.NewReader(blob)); err != nil {
		return layer, err
	}
	_, err := oras.PackManifest(ctx, repo, oras.PackManifestVersion1_1, "application/vnd.test",
		oras.PackManifestOptions{Layers: []ocispec.Descriptor{layer}})
	return layer, err
}

func TestEveryKindOfRegistryTakesAndGives(t *testing.T) {
	kinds := map[string]testregistry.Options{
		"http":     {},
		"https":    {TLS: true},
		"htpasswd": {Auth: testregistry.Htpasswd, Users: users},
		"token":    {TLS: true, Auth: testregistry.Token, Users: users},
	}
	for name, opts := range kinds {
		t.Run(name, func(t *testing.T) {
			s := testregistry.Start(t, opts)
			repo := repository(t, s, "org/m", "ada", "lovelace")
			blob := []byte("some bytes of a model")
			layer, err := pushSomething(t.Context(), repo, blob)
			if err != nil {
				t.Fatal(err)
			}
			got, err := content.FetchAll(t.Context(), repo, layer)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, blob) {
				t.Errorf("got %q, want %q", got, blob)
			}
			if opts.Auth == testregistry.Open {
				return
			}
			for _, password := range []string{"", "byron"} {
				user := "ada"
				if password == "" {
					user = ""
				}
				_, err := pushSomething(t.Context(), repository(t, s, "org/m", user, password), blob)
				if err == nil {
					t.Errorf("password %q: got no error, want one", password)
				}
			}
		})
	}
}

func TestAnonymousPullNeedsATokenAndMayNotPush(t *testing.T) {
	s := testregistry.Start(t, testregistry.Options{Auth: testregistry.Token, Users: users, AnonymousPull: true})
	blob := []byte("some bytes of a model")
	layer, err := pushSomething(t.Context(), repository(t, s, "org/m", "ada", "lovelace"), blob)
	if err != nil {
		t.Fatal(err)
	}
	anonymous := repository(t, s, "org/m", "", "")
	if _, err := content.FetchAll(t.Context(), anonymous, layer); err != nil {
		t.Errorf("pull: %v", err)
	}
	if _, err := pushSomething(t.Context(), anonymous, []byte("other bytes")); err == nil {
		t.Error("push: got no error, want one")
	}
	if status := get(t, s.Client(t), s.URL("/v2/org/m/blobs/"+layer.Digest.String()), "").status; status != http.StatusUnauthorized {
		t.Errorf("without a token: got status %d, want 401", status)
	}
}

func TestClientCertificateIsAskedFor(t *testing.T) {
	s := testregistry.Start(t, testregistry.Options{TLS: true, ClientCert: true})
	client := s.Client(t)
	if _, err := client.Get(s.URL("/v2/")); err == nil {
		t.Error("without a certificate: got no error, want one")
	}
	cert, err := tls.LoadX509KeyPair(s.CertFile, s.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	client.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{cert}
	if got := get(t, client, s.URL("/v2/"), "").status; got != http.StatusOK {
		t.Errorf("with a certificate: got status %d, want 200", got)
	}
}

func TestTrafficIsCounted(t *testing.T) {
	s := testregistry.Start(t, testregistry.Options{})
	blob := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB
	layer, err := pushSomething(t.Context(), repository(t, s, "org/m", "", ""), blob)
	if err != nil {
		t.Fatal(err)
	}
	config := int64(len("{}"))
	if got, want := s.Traffic.BlobBytesIn(), layer.Size+config; got != want {
		t.Errorf("blob bytes in: got %d, want %d\n%s", got, want, s.Traffic)
	}
	if got := s.Traffic.Count(http.MethodPut, testregistry.Manifest); got != 1 {
		t.Errorf("image manifests put: got %d, want 1", got)
	}
	if got, want := s.Blobs(t), 3; got != want {
		t.Errorf("blobs kept: got %d, want %d", got, want)
	}

	s.Traffic.Reset()
	address := s.URL("/v2/org/m/blobs/" + layer.Digest.String())
	answer := get(t, s.Client(t), address, "bytes=5-9")
	if answer.status != http.StatusPartialContent || answer.body != "56789" {
		t.Errorf("range: got status %d and %q, want 206 and %q", answer.status, answer.body, "56789")
	}
	if got := s.Traffic.BlobBytesOut(); got != 5 {
		t.Errorf("blob bytes out: got %d, want 5", got)
	}
	requests := s.Traffic.Requests()
	if len(requests) != 1 || requests[0].Range != "bytes=5-9" || requests[0].Kind != testregistry.Blob {
		t.Errorf("requests: got %v, want one for a range of a blob", requests)
	}
}

func TestMountMovesNoBytes(t *testing.T) {
	s := testregistry.Start(t, testregistry.Options{})
	layer, err := pushSomething(t.Context(), repository(t, s, "org/m", "", ""), []byte("some bytes"))
	if err != nil {
		t.Fatal(err)
	}
	s.Traffic.Reset()
	fallback := func() (io.ReadCloser, error) {
		t.Error("the blob is asked for")
		return nil, io.ErrUnexpectedEOF
	}
	if err := repository(t, s, "org/other", "", "").Mount(t.Context(), layer, "org/m", fallback); err != nil {
		t.Fatal(err)
	}
	if in, out := s.Traffic.BlobBytesIn(), s.Traffic.BlobBytesOut(); in+out != 0 {
		t.Errorf("got %d bytes in and %d out, want none", in, out)
	}
}

func TestCorruptChangesOneBit(t *testing.T) {
	s := testregistry.Start(t, testregistry.Options{})
	repo := repository(t, s, "org/m", "", "")
	blob := []byte("some bytes of a model")
	layer, err := pushSomething(t.Context(), repo, blob)
	if err != nil {
		t.Fatal(err)
	}
	s.Corrupt(t, layer.Digest.String())
	got := s.Blob(t, layer.Digest.String())
	if len(got) != len(blob) || bytes.Equal(got, blob) || digest.FromBytes(got) == layer.Digest {
		t.Errorf("got %q, want %q with one bit changed", got, blob)
	}
	if _, err := content.FetchAll(t.Context(), repo, layer); err == nil {
		t.Error("fetch: got no error, want one")
	}
}

func TestMiddlewareIsInBetween(t *testing.T) {
	s := testregistry.Start(t, testregistry.Options{Middleware: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/v2/busy/") {
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			next.ServeHTTP(w, r)
		})
	}})
	if got := get(t, s.Client(t), s.URL("/v2/busy/tags/list"), "").status; got != http.StatusTooManyRequests {
		t.Errorf("got status %d, want 429", got)
	}
	if got := get(t, s.Client(t), s.URL("/v2/"), "").status; got != http.StatusOK {
		t.Errorf("got status %d, want 200", got)
	}
}

type answer struct {
	status int
	body   string
}

func get(t *testing.T, client *http.Client, address, ranged string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if ranged != "" {
		req.Header.Set("Range", ranged)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, string(body)}
}
