package testenv

import (
	"io/fs"
	"os"
	"testing"
)

// Symlink makes a symlink. Where none can be made the test is skipped, loudly:
// Windows has them for administrators and developers only, and wine 8 says that it
// made one and did not.
func Symlink(t testing.TB, target, name string) {
	t.Helper()
	err := os.Symlink(target, name)
	if err == nil {
		var fi fs.FileInfo
		if fi, err = os.Lstat(name); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
			return
		}
	}
	NotChecked(t, "no symlink can be made (%v)", err)
}
