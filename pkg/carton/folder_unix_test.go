//go:build unix

package carton_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

func TestFolderWithAPipe(t *testing.T) {
	dir := unpacked(t, folderOf("model/a", "weights"))
	if err := syscall.Mkfifo(filepath.Join(dir, "model/pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := carton.OpenDir(dir)
	checkError(t, err, carton.ErrFormat, "model/pipe: is neither a file")
}

// A file that becomes a pipe blocks nobody.
func TestFolderWhoseFileBecomesAPipe(t *testing.T) {
	dir := unpacked(t, folderOf("model/a", "weights"))
	src, err := carton.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	name := filepath.Join(dir, "model/a")
	if err := errors.Join(os.Remove(name), syscall.Mkfifo(name, 0o600)); err != nil {
		t.Fatal(err)
	}
	_, err = carton.ReadMember(t.Context(), src, "model/a", 1000)
	checkError(t, err, carton.ErrFormat, "model/a: is not a regular file any more")
	_, err = src.OpenRange(t.Context(), "model/a", 1, 2)
	checkError(t, err, carton.ErrFormat, "model/a: is not a regular file any more")
}
