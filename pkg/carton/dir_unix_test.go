//go:build unix

package carton_test

import (
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
