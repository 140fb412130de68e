//go:build unix

package carton_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

func TestTheUmaskHolds(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	for _, mask := range []os.FileMode{0o077, 0o022, 0o002} {
		syscall.Umask(int(mask))
		parent := t.TempDir()
		src := cartontest.New(map[string][]byte{"model/a/b": []byte("x")}, nil)
		if err := carton.Assemble(t.Context(), filepath.Join(parent, "m.carton"), src, carton.AssembleOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := carton.Extract(t.Context(), filepath.Join(parent, "m"), src, carton.ExtractOptions{}); err != nil {
			t.Fatal(err)
		}
		file, folder := 0o666&^mask, os.ModeDir|0o777&^mask
		for p, want := range map[string]os.FileMode{
			"m.carton": file, "m": folder, "m/model": folder, "m/model/a": folder, "m/model/a/b": file, "m/MANIFEST": file,
		} {
			fi, err := os.Stat(filepath.Join(parent, p))
			if err != nil {
				t.Error(err)
			} else if fi.Mode() != want {
				t.Errorf("umask %04o: %s has the mode %v, want %v", mask, p, fi.Mode(), want)
			}
		}
	}
}

func TestFullDiskLeavesNothing(t *testing.T) {
	disk := testenv.SmallDisk(t, 1<<20)
	src := cartontest.New(map[string][]byte{"model/a": make([]byte, 600<<10), "model/b": make([]byte, 600<<10)}, nil)
	if err := os.WriteFile(filepath.Join(disk, "m"), []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := carton.Assemble(t.Context(), filepath.Join(disk, "m"), src, carton.AssembleOptions{Replace: true})
	if !errors.Is(err, syscall.ENOSPC) || len(hint.Of(err)) == 0 || !strings.HasPrefix(err.Error(), "write "+filepath.Join(disk, "m")+": ") {
		t.Errorf("Assemble: got %v, want ENOSPC about the file, with a hint", err)
	}
	if got := onlyFile(t, disk, "m"); string(got) != "old" {
		t.Errorf("the old file holds %q", got)
	}
	err = carton.Extract(t.Context(), filepath.Join(disk, "d"), src, carton.ExtractOptions{})
	if !errors.Is(err, syscall.ENOSPC) || len(hint.Of(err)) == 0 || !strings.HasPrefix(err.Error(), "write "+filepath.Join(disk, "d", "model")) {
		t.Errorf("Extract: got %v, want ENOSPC about the file in the folder, with a hint", err)
	}
	onlyFile(t, disk, "m")
}

// A disk that is full after more than a MiB leaves what is on it, and the same
// call goes on once there is room.
func TestFullDiskLeavesWhatIsThere(t *testing.T) {
	for base, write := range outputs {
		disk := testenv.SmallDisk(t, 6<<20)
		name := filepath.Join(disk, base)
		err := write(t.Context(), name, someRanges(nil), nil, nil)
		hints := fmt.Sprint(hint.Of(err))
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(hints, "free some space") || !strings.Contains(hints, "run it again to go on: ") {
			t.Errorf("%s: got %v, hints %q", base, err, hints)
		}
		if out, err := exec.Command("mount", "-o", "remount,size=20m", disk).CombinedOutput(); err != nil {
			t.Fatalf("remount: %v: %s", err, out)
		}
		var resumed int64
		if err := write(t.Context(), name, someRanges(nil), nil, func(n int64) { resumed = n }); err != nil {
			t.Fatal(err)
		}
		sameCarton(t, name, someRanges(nil))
		if resumed < mib {
			t.Errorf("%s: %d bytes were used again", base, resumed)
		}
	}
}
