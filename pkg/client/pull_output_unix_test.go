//go:build unix

package client

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// The right bytes are not enough: who else can write to them may do so as soon as
// they were verified.
func TestWhatOthersCanChangeIsNotAlreadyHere(t *testing.T) {
	target := inMemory()
	pushTo(t, target, "h.io/m:1", sample())
	for name, test := range map[string]struct {
		spoil func(file, folder string) error
		root  bool // whether only root can do this
		want  string
	}{
		"writable by the group": {func(file, folder string) error {
			return errors.Join(os.Chmod(file, 0o664), os.Chmod(folder, 0o775))
		}, false, "can be written by others"},
		"writable by all": {func(file, folder string) error {
			return errors.Join(os.Chmod(file, 0o666), os.Chmod(filepath.Join(folder, "model"), 0o777))
		}, false, "can be written by others"},
		"setuid": {func(file, folder string) error {
			return errors.Join(os.Chmod(file, 0o755|os.ModeSetuid), os.Chmod(filepath.Join(folder, "model", "b.bin"), 0o755|os.ModeSetuid))
		}, false, "has the mode u"},
		"another user's": {func(file, folder string) error {
			return errors.Join(os.Chown(file, 12345, 12345), os.Chown(folder, 12345, 12345))
		}, true, "belongs to another user"},
		"a member that is another user's": {func(file, folder string) error {
			return errors.Join(os.Chown(file, 12345, 12345), os.Chown(filepath.Join(folder, "carton.toml"), 12345, 12345))
		}, true, "belongs to another user"},
		"a symlink": {func(file, folder string) error {
			return errors.Join(os.Rename(file, file+"2"), os.Symlink(file+"2", file), os.Rename(folder, folder+"2"), os.Symlink(folder+"2", folder))
		}, false, "is a symlink"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.root && os.Geteuid() != 0 {
				testenv.NotChecked(t, "giving a file to another user needs root")
			}
			dir := t.TempDir()
			file := PullOptions{Output: filepath.Join(dir, "m.carton")}
			folder := PullOptions{Unpack: filepath.Join(dir, "m")}
			for _, o := range []PullOptions{file, folder, file, folder} {
				if _, err := fresh(within(target)).Pull(t.Context(), "h.io/m:1", o); err != nil {
					t.Fatal(err)
				}
			}
			if err := test.spoil(file.Output, folder.Unpack); err != nil {
				t.Fatal(err)
			}
			for _, o := range []PullOptions{file, folder} {
				if _, err := fresh(within(target)).Pull(t.Context(), "h.io/m:1", o); !errors.Is(err, carton.ErrExist) || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%+v: got %v, want ErrExist that says: %s", o, err, test.want)
				}
				if name == "a symlink" {
					continue
				}
				o.Force = true
				if _, err := fresh(within(target)).Pull(t.Context(), "h.io/m:1", o); err != nil {
					t.Errorf("by force: %v", err)
				}
				o.Force = false
				if r, err := fresh(within(target)).Pull(t.Context(), "h.io/m:1", o); err != nil || !r.AlreadyHere {
					t.Errorf("and then: got %+v, %v, want that it is here already", r, err)
				}
			}
		})
	}
}
