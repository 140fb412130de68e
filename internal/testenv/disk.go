package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// SmallDisk returns a folder that is a file system of its own and holds so many
// bytes. Where none can be mounted, as without root, the test is skipped,
// loudly.
func SmallDisk(t testing.TB, bytes int64) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	size := "size=" + strconv.FormatInt(bytes, 10)
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", size, "tmpfs", dir).CombinedOutput(); err != nil {
		NotChecked(t, "no small disk can be mounted (%v: %s)", err, out)
	}
	t.Cleanup(func() {
		if err := exec.Command("umount", dir).Run(); err != nil {
			t.Errorf("umount %s: %v", dir, err)
		}
	})
	return dir
}
