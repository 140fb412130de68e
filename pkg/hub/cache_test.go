package hub_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/hubtest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/hub"
)

func sha256Of(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What the hub's tools have fetched is read where it is, and checked; what is not there
// as a whole is fetched.
func TestFilesInTheCacheAreNotFetched(t *testing.T) {
	h := hubtest.New(t, hubtest.Config{})
	weights := strings.Repeat("weights", 100_000)
	files := []hubtest.File{
		{Path: "config.json", Content: "{}"},
		{Path: "a.bin", Content: weights, Large: true},
		{Path: "b.bin", Content: "b" + weights, Large: true},
		{Path: "c.bin", Content: "c" + weights, Large: true},
	}
	h.Commit("Org/New", files...)
	h.Rename("Org/New", "org/new")
	cache := t.TempDir()
	c, err := hub.New(hub.Options{Endpoint: h.URL, Policy: quick, Cache: cache})
	if err != nil {
		t.Fatal(err)
	}
	read := func() (sent int64, err error) {
		t.Helper()
		h.Sent.Store(0)
		src, err := packed(t.Context(), c, "Org/New", "")
		if err != nil {
			return 0, err
		}
		defer src.Close()
		_, err = everything(t.Context(), src)
		h.Quiet()
		return h.Sent.Load(), err
	}
	if sent, err := read(); err != nil || sent < 3*700_000 {
		t.Errorf("without a cache the hub sent %d bytes: %v", sent, err)
	}
	blob := func(text string) string {
		return filepath.Join(cache, "models--Org--New", "blobs", sha256Of(text))
	}
	put(t, blob(weights), weights)
	put(t, blob("b"+weights), weights) // another size
	put(t, blob("c"+weights)+".incomplete", "c")
	if sent, err := read(); err != nil || sent < 2*700_000 || sent > 2*700_000+100 {
		t.Errorf("with one of three files in the cache the hub sent %d bytes: %v", sent, err)
	}
	s, err := c.Open(t.Context(), "org/new", "")
	if err != nil {
		t.Fatal(err)
	}
	if n, size := s.InCache(); n != 0 || size != 0 { // that is called Org/New
		t.Errorf("got %d files of %d bytes in the cache of another name", n, size)
	}
	put(t, blob("b"+weights), "b"+strings.ToUpper(weights))
	if _, err := read(); !errors.Is(err, carton.ErrChecksum) {
		t.Errorf("other content of the right size: got %v", err)
	}
}

// Without a hub, the cache says what it has of a repository and of a revision.
func TestWhatIsInTheCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "hub")
	at := filepath.Join(dir, "models--org--m")
	put(t, filepath.Join(at, "snapshots", sha, "a"), "a")
	put(t, filepath.Join(at, "refs", "refs", "pr", "1"), sha+"\n")
	put(t, filepath.Join(at, "refs", "gone"), strings.Repeat("b", 40))
	put(t, filepath.Join(at, "refs", "odd"), "../..")
	o := hub.Options{Cache: dir}
	for in, want := range map[string]string{
		"org/m ": at, "org/m refs/pr/1": filepath.Join(at, "snapshots", sha), "org/m " + sha: filepath.Join(at, "snapshots", sha),
		"org/m gone": "", "org/m odd": "", "org/m main": "", "org/none ": "", "org/m " + strings.Repeat("b", 40): "",
	} {
		repository, revision, _ := strings.Cut(in, " ")
		got, err := o.Cached(repository, revision)
		if got != want || (err == nil) != (want != "") || err != nil && (!errors.Is(err, fs.ErrNotExist) || !strings.Contains(fmt.Sprint(hint.Of(err)), "hf download")) {
			t.Errorf("%s: got %s, %v, want %s", in, got, err, want)
		}
	}
	for _, bad := range [][2]string{{"../m", ""}, {"org/m", "../x"}} {
		if got, err := o.Cached(bad[0], bad[1]); err == nil {
			t.Errorf("%q: got %s", bad, got)
		}
	}
}
