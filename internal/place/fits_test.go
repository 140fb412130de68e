package place_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/place"
)

// A name that the file system refuses is told from other errors, and nothing is left
// of the names that were tried.
func TestFits(t *testing.T) {
	for _, stale := range []bool{false, true} {
		dir := t.TempDir()
		name := filepath.Join(dir, "m")
		if stale {
			d, err := place.CreateFolder(name, place.Options{Resume: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(d.Mkdir("a"), fill(d, "a/there", "kept")); err != nil {
				t.Fatal(err)
			}
			if _, err := d.Keep(); err != nil {
				t.Fatal(err)
			}
		}
		d, err := place.CreateFolder(name, place.Options{Resume: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Mkdir("a"); err != nil {
			t.Fatal(err)
		}
		if err := d.Fits([]string{"a/there", "a/b", "c"}, ""); err != nil {
			t.Error(err)
		}
		long := strings.Repeat("n", 300)
		var not *place.Misfit
		if err := d.Fits([]string{"a/b", "a/" + long, "c"}, ""); !errors.As(err, &not) || not.Path != "a/"+long {
			t.Errorf("a file: got %v, want a Misfit", err)
		}
		if err := d.Mkdir(long); !errors.As(err, &not) || not.Path != long {
			t.Errorf("a folder: got %v, want a Misfit", err)
		}
		if err := d.Fits(nil, "c/d"); !errors.As(err, &not) || not.Path != "c/d" {
			t.Errorf("a symlink: got %v, want a Misfit", err)
		}
		if err := d.Mkdir("a"); !stale && errors.As(err, &not) {
			t.Errorf("a folder twice: got %v, want no Misfit", err)
		}
		want := []string{"a/"}
		if stale {
			want = append(want, "a/there=kept")
		}
		wantTree(t, name+".partial", want...)
		if err := d.Discard(); err != nil {
			t.Error(err)
		}
	}
}
