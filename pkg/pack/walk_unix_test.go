//go:build unix

package pack_test

import (
	"net"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

func TestSpecialFilesAreRefusedByName(t *testing.T) {
	dir := tree(t, map[string]string{"a": "x"})
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, noop, carton.ErrInsecurePath, "pipe: is neither a file, a folder nor a symlink, but a pipe", dir)
	refused(t, noop, carton.ErrInsecurePath, "but a pipe", filepath.Join(dir, "pipe"))
	// Behind a symlink it is no better.
	dir = tree(t, map[string]string{"a": "x", "l": "-> sub/pipe", "sub/": ""})
	if err := syscall.Mkfifo(filepath.Join(dir, "sub", "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, noop, carton.ErrInsecurePath, "but a pipe", dir)

	dir = tree(t, map[string]string{"a": "x"})
	t.Chdir(dir) // socket paths are short
	l, err := net.Listen("unix", "s")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	refused(t, noop, carton.ErrInsecurePath, "s: is neither a file, a folder nor a symlink, but a socket", dir)
	refused(t, noop, carton.ErrInsecurePath, "a device", "/dev/null")
}
