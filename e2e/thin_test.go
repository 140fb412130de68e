package e2e

import (
	"encoding/binary"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
)

// The promise: a thin carton is small, its links are good for anybody, and it is
// worth as much as the whole one wherever the registry can be reached.

const (
	weightSize = 8 << 20
	thinLimit  = 1 << 20
)

// weighty is a model of two large files and a few small ones.
func weighty() *model {
	header := `{"w":{"dtype":"U8","shape":[` + strconv.Itoa(weightSize) + `],"data_offsets":[0,` + strconv.Itoa(weightSize) + `]}}`
	header = string(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))) + header
	return newModel(map[string]string{
		"model/encoder.safetensors": header + random("encoder", weightSize),
		"model/decoder.bin":         random("decoder", weightSize),
		"model/config.json":         `{"layers": 12}`,
		"tensor_data/index.toml":    "tensor = []\n",
		"misc/README.md":            "# A model\n",
	})
}

// linked returns the members of m that are not in the zip, by hash.
func linked(m *model, z zipped) map[string]string {
	missing := map[string]string{}
	for name, content := range m.files {
		if _, ok := z.files[name]; !ok {
			missing[hexSum(content)] = name
		}
	}
	return missing
}

func TestThin(t *testing.T) {
	u := newUser(t)
	m := weighty()
	m.write(t, u.path("full.carton"))
	s := testregistry.Start(t, testregistry.Options{})
	ref := s.Host + "/org/m:1"
	first := u.push(t, "full.carton", ref)
	u.pull(t, ref, "-o", "whole.carton")

	s.Traffic.Reset()
	if got := u.pull(t, ref, "--thin", "-o", "thin.carton").ModelHash; got != m.hash() {
		t.Errorf("thin: got model hash %s, want %s", got, m.hash())
	}
	if out := s.Traffic.BlobBytesOut(); out > thinLimit {
		t.Errorf("thin: the registry sent %d bytes, want less than %d", out, thinLimit)
	}
	info, err := os.Stat(u.path("thin.carton"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() >= thinLimit {
		t.Errorf("thin: got %d bytes, want less than %d", info.Size(), thinLimit)
	}
	thin := readZip(t, u.path("thin.carton"))
	if thin.manifest != m.manifest() {
		t.Error("thin: MANIFEST is changed")
	}
	missing := linked(m, thin)
	for _, want := range []string{"model/encoder.safetensors", "model/decoder.bin"} {
		if missing[hexSum(m.files[want])] != want {
			t.Errorf("thin: %s is inside, want it linked", want)
		}
	}
	for _, path := range missing {
		if !strings.HasPrefix(path, "model/") {
			t.Errorf("thin: %s is linked, want it inside", path)
		}
	}
	checkLinks(t, s, m, thin, missing)

	t.Run("pushed to another repository", func(t *testing.T) {
		s.Traffic.Reset()
		p := u.push(t, "thin.carton", s.Host+"/other/m:1", "--allow-link-repo", s.Host+"/org/m")
		if p.Digest != first.Digest {
			t.Errorf("got digest %s, want %s as of the whole carton", p.Digest, first.Digest)
		}
		for _, l := range p.Layers {
			if l.Status != "mounted" {
				t.Errorf("%v: got status %s, want mounted", l.Paths, l.Status)
			}
		}
		// The config is no member, and the library does not know where it is.
		if in := s.Traffic.BlobBytesIn(); in > 1<<10 {
			t.Errorf("the registry got %d bytes, want none of a member\n%s", in, s.Traffic)
		}
		// The config tells what the headers of safetensors say, so they are read.
		if out, most := s.Traffic.BlobBytesOut(), int64(128<<10); out > most {
			t.Errorf("the registry sent %d bytes, want at most %d\n%s", out, most, s.Traffic)
		}
		u.pull(t, s.Host+"/other/m:1", "-o", "other.carton")
		wantSameFile(t, u, "other.carton", "whole.carton")
	})

	t.Run("pushed by somebody else", func(t *testing.T) {
		u.emptyCache(t)
		s.Traffic.Reset()
		p := u.push(t, "thin.carton", s.Host+"/third/m:1", "--allow-link-repo", s.Host+"/org/m")
		if p.Digest != first.Digest {
			t.Errorf("got digest %s, want %s as of the whole carton", p.Digest, first.Digest)
		}
		for _, path := range missing {
			if got := p.layer(t, path).Status; got != "mounted" {
				t.Errorf("%s: got status %s, want mounted", path, got)
			}
		}
		// The config tells what the headers of safetensors say, so they are read.
		if out, most := s.Traffic.BlobBytesOut(), int64(128<<10); out > most {
			t.Errorf("the registry sent %d bytes, want at most %d, for the header of one file\n%s", out, most, s.Traffic)
		}
	})

	t.Run("made whole", func(t *testing.T) {
		u.must(t, "pull", "thin.carton", "-o", "made.carton", "--allow-link-host", s.Host)
		wantSameFile(t, u, "made.carton", "whole.carton")
	})

	t.Run("pushed to another registry", func(t *testing.T) {
		other := testregistry.Start(t, testregistry.Options{})
		p := u.push(t, "thin.carton", other.Host+"/org/m:1", "--allow-link-host", s.Host)
		if p.Digest != first.Digest {
			t.Errorf("got digest %s, want %s", p.Digest, first.Digest)
		}
		u.pull(t, other.Host+"/org/m:1", "-o", "moved.carton")
		wantSameFile(t, u, "moved.carton", "whole.carton")
		// All is there now: a second push follows no link, and needs no permission.
		s.Traffic.Reset()
		if again := u.push(t, "thin.carton", other.Host+"/org/m:1"); *again.BytesUploaded != 0 {
			t.Errorf("second push: got %d bytes uploaded, want none", *again.BytesUploaded)
		}
		if got := s.Traffic.Count("", testregistry.Any); got != 0 {
			t.Errorf("second push: %d links were followed, want none\n%s", got, s.Traffic)
		}
	})

	t.Run("without permission", func(t *testing.T) {
		s.Traffic.Reset()
		r := u.run(t, "pull", "thin.carton", "-o", "refused.carton")
		if r.code == 0 || !strings.Contains(r.stderr, "--allow-link-host") {
			t.Errorf("got exit code %d and\n%s\nwant a refusal that names --allow-link-host", r.code, r.stderr)
		}
		if got := s.Traffic.Count("", testregistry.Any); got != 0 {
			t.Errorf("%d links were followed, want none\n%s", got, s.Traffic)
		}
		if _, err := os.Lstat(u.path("refused.carton")); err == nil {
			t.Error("refused.carton is there")
		}
	})
}

// checkLinks checks that LINKS lists exactly the members that are not inside,
// and that the registry serves them to a client without credentials.
func checkLinks(t *testing.T, s *testregistry.Server, m *model, thin zipped, missing map[string]string) {
	t.Helper()
	var links struct {
		Version int                 `toml:"version"`
		URLs    map[string][]string `toml:"urls"`
	}
	if _, err := toml.Decode(thin.links, &links); err != nil {
		t.Fatalf("LINKS: %v in\n%s", err, thin.links)
	}
	if links.Version != 1 {
		t.Errorf("LINKS: got version %d, want 1", links.Version)
	}
	got, want := slices.Sorted(maps.Keys(links.URLs)), slices.Sorted(maps.Keys(missing))
	if !slices.Equal(got, want) {
		t.Errorf("LINKS: got %v, want what is not inside: %v", got, want)
	}
	for hash, urls := range links.URLs {
		if want := s.URL("/v2/org/m/blobs/sha256:" + hash); len(urls) == 0 || urls[0] != want {
			t.Errorf("LINKS: got %q, want %s first", urls, want)
			continue
		}
		status, body := httpGet(t, s.Client(t), urls[0])
		if status != http.StatusOK || body != m.files[missing[hash]] {
			t.Errorf("%s: got status %d and %d bytes, want %s", urls[0], status, len(body), missing[hash])
		}
	}
}

func wantSameFile(t *testing.T, u *user, got, want string) {
	t.Helper()
	if g, w := fileSum(t, u.path(got)), fileSum(t, u.path(want)); g != w {
		t.Errorf("%s has sha256 %s, want %s as %s", got, g, w, want)
	}
}

func TestThinSaysThatItsURLsNeedAToken(t *testing.T) {
	u := newUser(t)
	weighty().write(t, u.path("full.carton"))
	s := testregistry.Start(t, testregistry.Options{Auth: testregistry.Token, Users: users})
	u.login(t, s, "ada", "lovelace")
	u.must(t, "push", "full.carton", s.Host+"/org/m:1")

	r := u.must(t, "pull", s.Host+"/org/m:1", "--thin", "-o", "thin.carton")
	if !strings.Contains(r.stderr, "token") && !strings.Contains(r.stderr, "credentials") {
		t.Errorf("got no word on standard error of loaders that have no token:\n%s", r.stderr)
	}
	thin := readZip(t, u.path("thin.carton"))
	if strings.Contains(thin.links, "lovelace") || strings.Contains(thin.links, "ada") {
		t.Errorf("LINKS tells credentials:\n%s", thin.links)
	}
	// Links are read with credentials only where the user says so.
	if r := u.run(t, "push", "thin.carton", s.Host+"/other/m:1"); r.code == 0 || !strings.Contains(r.stderr, "--allow-link-repo "+s.Host+"/org/m") {
		t.Errorf("got exit code %d and\n%s\nwant a refusal that names --allow-link-repo", r.code, r.stderr)
	}
	u.must(t, "push", "thin.carton", s.Host+"/other/m:1", "--allow-link-repo", s.Host+"/org/m")
}
