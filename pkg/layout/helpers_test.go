package layout_test

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/testenv"
)

// writeTree writes files; a content that begins with ../ makes a symlink.
func writeTree(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if strings.HasPrefix(content, "../") {
			testenv.Symlink(t, content, path)
		} else {
			err = os.WriteFile(path, []byte(content), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// nopCloser is a reader that can be closed. It hides what else the reader can.
type nopCloser struct{ io.Reader }

func (nopCloser) Close() error { return nil }

// allocated returns how many bytes have been allocated on the heap so far.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
