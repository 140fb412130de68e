package testenv

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
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

// ExFAT returns a folder on a file system of memory cards and USB sticks: it knows no
// symlinks, and not every name. Where none can be mounted, as without root, the test
// is skipped, loudly. Debian's packages are exfatprogs and exfat-fuse.
func ExFAT(t testing.TB) string {
	t.Helper()
	mkfs, mount, losetup := Program(t, "mkfs.exfat"), Program(t, "mount.exfat-fuse"), Program(t, "losetup")
	image, dir := filepath.Join(t.TempDir(), "image"), filepath.Join(t.TempDir(), "exfat")
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 16<<20), os.Mkdir(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	run := func(program string, args ...string) string {
		out, err := exec.Command(program, args...).CombinedOutput()
		if err != nil {
			NotChecked(t, "no exFAT can be mounted (%s: %v: %s)", filepath.Base(program), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run(mkfs, image)
	device := run(losetup, "--find", "--show", image)
	t.Cleanup(func() {
		if err := exec.Command(losetup, "--detach", device).Run(); err != nil {
			t.Errorf("detach %s: %v", device, err)
		}
	})
	run(mount, device, dir)
	t.Cleanup(func() {
		if err := exec.Command("umount", dir).Run(); err != nil {
			t.Errorf("umount %s: %v", dir, err)
		}
	})
	return dir
}
