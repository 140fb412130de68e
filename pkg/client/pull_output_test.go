package client

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/location"
)

// testTree lists what is in a folder, with the content of files.
func testTree(t *testing.T, dir string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		entry := p + " " + e.Type().String()
		if e.Type().IsRegular() {
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			entry += " " + string(b)
		}
		list = append(list, entry)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// What is read is not written into, whatever way leads there.
func TestNothingIsWrittenIntoItsSource(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, err := range []error{
		carton.Extract(t.Context(), "c", sample(), carton.ExtractOptions{}),
		os.Symlink("c", "link"),
		os.Symlink("c/model", "deep"),
		os.Mkdir("there", 0o755),
		os.Symlink("../c", "there/back"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := fresh().Push(t.Context(), "./c", "oci:lay:1", PushOptions{}); err != nil {
		t.Fatal(err)
	}
	before := testTree(t, dir)
	for _, out := range []string{
		"c", "c/x", "c/model/x", "link/x", "deep/x", "there/../c/x", "there/back/x", "./c/new/er", filepath.Join(dir, "c", "x"),
	} {
		_, err := fresh().Push(t.Context(), "./c", "oci:"+out+":1", PushOptions{})
		wantInto(t, "push ./c oci:"+out, err)
		_, err = fresh().Pull(t.Context(), "./c", PullOptions{Output: out, Force: true})
		wantInto(t, "pull ./c -o "+out, err)
		if out != "c" {
			_, err = fresh().Pull(t.Context(), "./c", PullOptions{Unpack: out, Force: true})
			wantInto(t, "pull ./c --unpack "+out, err)
		}
	}
	for _, out := range []string{"lay/x", "lay/blobs/x", "lay/blobs/sha256/x"} {
		_, err := fresh().Push(t.Context(), "oci:lay:1", "oci:"+out+":1", PushOptions{})
		wantInto(t, "push oci:lay oci:"+out, err)
		_, err = fresh().Pull(t.Context(), "oci:lay:1", PullOptions{Output: out})
		wantInto(t, "pull oci:lay -o "+out, err)
		_, err = fresh().Pull(t.Context(), "oci:lay:1", PullOptions{Unpack: out})
		wantInto(t, "pull oci:lay --unpack "+out, err)
	}
	if after := testTree(t, dir); !slices.Equal(before, after) {
		t.Errorf("got %q, want %q", after, before)
	}

	// Another tag of the same layout, and a folder in its own place, are no trouble.
	if _, err := fresh().Push(t.Context(), "oci:lay:1", "oci:there/../lay:2", PushOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := fresh().Pull(t.Context(), "./c", PullOptions{Unpack: "c", Force: true}); err != nil {
		t.Error(err)
	}
	if _, err := fresh().Pull(t.Context(), "./c", PullOptions{Unpack: "c"}); err != nil {
		t.Error(err)
	}
}

func wantInto(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, location.ErrLocation) || !strings.Contains(err.Error(), "written into what is read") || len(hint.Of(err)) == 0 {
		t.Errorf("%s: got %v, want a refusal with a hint", what, err)
	}
}

// A thin carton of other links is another file.
func TestLinksAreComparedWithWhatIsWanted(t *testing.T) {
	target := inMemory()
	pushTo(t, target, "h.io/m:1", sample())
	name := filepath.Join(t.TempDir(), "thin.carton")
	pull := func(base string, force bool) (*PullResult, error) {
		return fresh(within(target)).Pull(t.Context(), "h.io/m:1", PullOptions{Output: name, Thin: true, LinkBase: base, Force: force})
	}
	if _, err := pull("https://old.example/", false); err != nil {
		t.Fatal(err)
	}
	if r, err := pull("https://old.example", false); err != nil || !r.AlreadyHere {
		t.Errorf("got %+v, %v, want that it is here already", r, err)
	}
	if _, err := pull("https://new.example", false); !errors.Is(err, carton.ErrExist) || !strings.Contains(err.Error(), "has other links") {
		t.Errorf("got %v, want ErrExist", err)
	}
	if r, err := pull("https://new.example", true); err != nil || r.AlreadyHere {
		t.Errorf("by force: got %+v, %v", r, err)
	}
	src, err := carton.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	for _, urls := range src.Links().URLs {
		if !strings.HasPrefix(urls[0], "https://new.example/") {
			t.Errorf("got the link %s", urls[0])
		}
	}
}
