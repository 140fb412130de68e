package carton_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// What a memory card can't hold is an error before a byte of a member is read; the
// error names the member, and both ways that its hint shows lead to an end.
func TestExtractToAFileSystemThatHoldsLess(t *testing.T) {
	disk := testenv.ExFAT(t)
	for what, c := range map[string]struct {
		member string
		link   bool
	}{
		"a file":             {member: "model/a:b"},
		"a folder":           {member: "model/what?/a"},
		"a symlink":          {member: "model/l", link: true},
		"a file beside many": {member: `model/"`},
	} {
		t.Run(what, func(t *testing.T) {
			files := map[string][]byte{"model/weights.bin": bytes.Repeat([]byte("w"), 1000), "model/gewichte-ü": []byte("ü")}
			links := map[string]string{}
			if c.link {
				links[c.member] = "weights.bin"
			} else {
				files[c.member] = []byte("x")
			}
			src := cartontest.New(files, links)
			dir := filepath.Join(disk, "m")
			err := carton.Extract(t.Context(), dir, src, carton.ExtractOptions{})
			checkError(t, err, carton.ErrInsecurePath, "the file system of the output can't hold it")
			var named *carton.Error
			if !errors.As(err, &named) || !strings.HasPrefix(c.member, named.Path) {
				t.Errorf("got %v, want it to name %s", err, c.member)
			}
			if hints := fmt.Sprint(hint.Of(err)); !strings.Contains(hints, "one .carton file") || !strings.Contains(hints, string(hint.Exclude)) {
				t.Errorf("got the hints %q", hints)
			}
			if read := src.Opened(); len(read) > 0 {
				t.Errorf("%q were read", read)
			}
			wantEmpty(t, disk)

			if err := carton.Assemble(t.Context(), dir+".carton", src, carton.AssembleOptions{}); err != nil {
				t.Errorf("as one file: %v", err)
			}
			if err := carton.Extract(t.Context(), dir, src, carton.ExtractOptions{Exclude: []string{c.member}}); err != nil {
				t.Errorf("without it: %v", err)
			}
			if err := errors.Join(os.RemoveAll(dir), os.Remove(dir+".carton")); err != nil {
				t.Error(err)
			}
		})
	}
}

// Names that are only uncommon go through, where nothing has them changed.
func TestExtractOfUncommonNames(t *testing.T) {
	files := map[string][]byte{
		"model/a:b": []byte("1"), "model/what?/con": []byte("2"), "model/e\u0301": []byte("3"), "model/" + strings.Repeat("n", 250): []byte("4"),
	}
	dir := filepath.Join(t.TempDir(), "m")
	switch err := carton.Extract(t.Context(), dir, cartontest.New(files, nil), carton.ExtractOptions{}); {
	case errors.Is(err, carton.ErrInsecurePath):
		testenv.NotChecked(t, "this system doesn't have the names (%v)", err)
	case err != nil:
		t.Fatal(err)
	}
	for p, want := range files {
		if got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(p))); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: got %q, %v, want %q", p, got, err, want)
		}
	}
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left in %s: %v, %v", dir, left, err)
	}
}
