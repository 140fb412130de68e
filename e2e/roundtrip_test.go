package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
)

// The promise: a real carton goes through every kind of registry and comes back
// with the same model hash, the same bytes, and the same file every time; what
// a registry has is not sent again.

var users = map[string]string{"ada": "lovelace"}

func TestThroughEveryKindOfRegistry(t *testing.T) {
	basic := testregistry.Options{Auth: testregistry.Htpasswd, Users: users}
	token := testregistry.Options{Auth: testregistry.Token, Users: users}
	tokenTLS := token
	tokenTLS.TLS = true
	tests := map[string]struct {
		registry testregistry.Options
		// prepare returns the flags that this registry needs.
		prepare func(t *testing.T, u *user, s *testregistry.Server) []string
	}{
		"http": {testregistry.Options{}, func(*testing.T, *user, *testregistry.Server) []string {
			return []string{"--plain-http"}
		}},
		"http without saying so": {testregistry.Options{}, noFlags},
		"https with an own authority": {testregistry.Options{TLS: true}, func(_ *testing.T, _ *user, s *testregistry.Server) []string {
			return []string{"--ca-file", s.CAFile}
		}},
		"https with an authority of the system": {testregistry.Options{TLS: true}, func(_ *testing.T, u *user, s *testregistry.Server) []string {
			u.env = append(u.env, "SSL_CERT_FILE="+s.CAFile)
			return nil
		}},
		"https unchecked": {testregistry.Options{TLS: true}, func(*testing.T, *user, *testregistry.Server) []string {
			return []string{"--insecure"}
		}},
		"https with a client certificate": {testregistry.Options{TLS: true, ClientCert: true}, func(_ *testing.T, _ *user, s *testregistry.Server) []string {
			return []string{"--ca-file", s.CAFile, "--cert-file", s.CertFile, "--key-file", s.KeyFile}
		}},
		"htpasswd after login": {basic, func(t *testing.T, u *user, s *testregistry.Server) []string {
			u.login(t, s, "ada", "lovelace")
			return nil
		}},
		"token after login": {token, func(t *testing.T, u *user, s *testregistry.Server) []string {
			u.login(t, s, "ada", "lovelace")
			return nil
		}},
		"token over https with an auth file": {tokenTLS, func(t *testing.T, u *user, s *testregistry.Server) []string {
			// base64 of ada:lovelace
			config := `{"auths": {"` + s.Host + `": {"auth": "YWRhOmxvdmVsYWNl"}}}`
			writeFile(t, filepath.Join(u.home, "auth.json"), config)
			u.env = append(u.env, "REGISTRY_AUTH_FILE="+filepath.Join(u.home, "auth.json"))
			return []string{"--ca-file", s.CAFile}
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			u := newUser(t)
			s := testregistry.Start(t, tt.registry)
			flags := tt.prepare(t, u, s)
			thereAndBack(t, u, s, ours(t), flags)
		})
	}
}

// The same with the one public carton, through one kind of registry.
func TestThePublicCartonThereAndBack(t *testing.T) {
	c := theirs(t)
	thereAndBack(t, newUser(t), testregistry.Start(t, testregistry.Options{}), c, nil)
}

func noFlags(*testing.T, *user, *testregistry.Server) []string { return nil }

func thereAndBack(t *testing.T, u *user, s *testregistry.Server, c referenceCarton, flags []string) {
	t.Helper()
	file := c.file
	ref := s.Host + "/org/test:1"
	with := func(args ...string) []string { return append(args, flags...) }

	first := u.push(t, with(file, ref)...)
	checkPush(t, s, first, ref, c.hash)
	if got := first.statuses()["uploaded"]; got != len(first.Layers) {
		t.Errorf("first push: got %v, want every layer uploaded", first.statuses())
	}
	if in := s.Traffic.BlobBytesIn(); *first.BytesUploaded != in || in == 0 {
		t.Errorf("first push: says %d bytes uploaded, the registry got %d", *first.BytesUploaded, in)
	}

	u.emptyCache(t)
	s.Traffic.Reset()
	second := u.push(t, with(file, ref)...)
	checkPush(t, s, second, ref, c.hash)
	if got := second.statuses()["exists"]; got != len(second.Layers) || *second.BytesUploaded != 0 {
		t.Errorf("second push: got %v and %d bytes uploaded, want every layer to exist", second.statuses(), *second.BytesUploaded)
	}
	if in, posts := s.Traffic.BlobBytesIn(), s.Traffic.Count(http.MethodPost, testregistry.Upload); in+int64(posts) != 0 {
		t.Errorf("second push: the registry got %d bytes in %d uploads, want none\n%s", in, posts, s.Traffic)
	}
	if second.Digest != first.Digest {
		t.Errorf("second push: got digest %s, want %s", second.Digest, first.Digest)
	}

	s.Traffic.Reset()
	back := u.pull(t, with(ref, "-o", "back.carton")...)
	if back.ModelHash != c.hash || back.Digest != first.Digest {
		t.Errorf("pull: got model hash %s and digest %s, want %s and %s", back.ModelHash, back.Digest, c.hash, first.Digest)
	}
	if out := s.Traffic.BlobBytesOut(); *back.BytesDownloaded != out || out == 0 {
		t.Errorf("pull: says %d bytes downloaded, the registry sent %d", *back.BytesDownloaded, out)
	}
	got, want := readZip(t, u.path("back.carton")), readZip(t, file)
	if got.manifest != want.manifest || hexSum(got.manifest) != c.hash {
		t.Error("MANIFEST came back changed")
	}
	if len(want.files) != c.members {
		t.Fatalf("%s has %d members, want %d", file, len(want.files), c.members)
	}
	same(t, &got.model, &want.model)

	other := newUser(t)
	other.env = u.with("CARTON_OCI_CACHE=" + other.cache).env
	other.pull(t, with(ref, "-o", "again.carton")...)
	if got, want := fileSum(t, other.path("again.carton")), fileSum(t, u.path("back.carton")); got != want {
		t.Errorf("two pulls differ: sha256 %s and %s", got, want)
	}
	u.must(t, "verify", "back.carton")
	u.must(t, with("verify", ref)...)
	onlyThese(t, u.dir, "back.carton")
	onlyThese(t, u.tmp)
}

// checkPush checks what a push says against what the registry holds.
func checkPush(t *testing.T, s *testregistry.Server, p pushed, ref, modelHash string) {
	t.Helper()
	if p.Reference != ref || p.ModelHash != modelHash {
		t.Errorf("got reference %s and model hash %s, want %s and %s", p.Reference, p.ModelHash, ref, modelHash)
	}
	if p.ArtifactType != "application/vnd.cnai.model.manifest.v1+json" {
		t.Errorf("got artifact type %s", p.ArtifactType)
	}
	if got, want := p.layer(t, "MANIFEST").Digest, "sha256:"+modelHash; got != want {
		t.Errorf("MANIFEST's layer: got digest %s, want %s", got, want)
	}
	var manifest struct {
		ArtifactType string
		Annotations  map[string]string
		Layers       []struct {
			MediaType, Digest string
			Size              int64
		}
	}
	raw := s.Blob(t, p.Digest)
	if got := "sha256:" + hexSum(string(raw)); got != p.Digest {
		t.Errorf("the registry's image manifest: got digest %s, want %s", got, p.Digest)
	}
	if err := json.Unmarshal(raw, &manifest); err != nil {
		t.Fatal(err)
	}
	if got := manifest.Annotations["run.carton.model.hash"]; got != modelHash {
		t.Errorf("annotation run.carton.model.hash: got %s, want %s", got, modelHash)
	}
	if manifest.ArtifactType != p.ArtifactType || len(manifest.Layers) != len(p.Layers) {
		t.Fatalf("the image manifest has type %s and %d layers, push says %s and %d",
			manifest.ArtifactType, len(manifest.Layers), p.ArtifactType, len(p.Layers))
	}
	for i, l := range manifest.Layers {
		said := p.Layers[i]
		if l.Digest != said.Digest || l.MediaType != said.MediaType || l.Size != said.Size {
			t.Errorf("layer %d: the image manifest has %v, push says %v", i, l, said)
		}
		if len(said.Paths) == 0 {
			t.Errorf("layer %d: push names no path", i)
		}
		if blob := s.Blob(t, l.Digest); int64(len(blob)) != l.Size || "sha256:"+hexSum(string(blob)) != l.Digest {
			t.Errorf("layer %s: the registry holds %d other bytes", strings.Join(said.Paths, ","), len(blob))
		}
	}
}

func writeFile(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// onlyThese checks that a folder holds these entries and nothing else.
func onlyThese(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s holds %q, want %q", dir, got, want)
	}
}
