package e2e

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/containerd"
	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
)

// BenchmarkNodeTwoGiB says what a model of 2 GiB in four files costs a node:
// the time of a pull by containerd, which extracts it too, and the disk that both
// copies take; beside it, the time of a pull into a folder. docs/kubernetes.md has
// figures.
func BenchmarkNodeTwoGiB(b *testing.B) {
	u := newUser(b)
	writeWeights(b, u.path("large"), 4, largeSize/4)
	s := testregistry.Start(b, testregistry.Options{})
	ref := s.Host + "/org/large:1"
	u.must(b, "push", "./large", ref, "--image")

	b.Run("containerd", func(b *testing.B) {
		b.SetBytes(largeSize)
		for b.Loop() {
			b.StopTimer()
			c := containerd.Start(b, containerd.Light)
			syscall.Sync()
			b.StartTimer()
			if err := c.Pull(ref + "-image"); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			b.ReportMetric(float64(diskUsage(b, c.Dir()))/largeSize, "disk/model")
			b.StartTimer()
		}
	})
	b.Run("unpack", func(b *testing.B) {
		b.SetBytes(largeSize)
		for b.Loop() {
			b.StopTimer()
			if err := os.RemoveAll(u.path("tree")); err != nil {
				b.Fatal(err)
			}
			syscall.Sync()
			b.StartTimer()
			u.must(b, "pull", ref, "--unpack", "tree")
		}
	})
}

// writeWeights writes an unpacked carton with n weights of so many bytes.
func writeWeights(t testing.TB, dir string, n int, size int64) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "model"), 0o755); err != nil {
		t.Fatal(err)
	}
	var list strings.Builder
	list.WriteString("carton.toml=" + hexSum(info) + "\n")
	for i := range n {
		name := fmt.Sprintf("model/part%d.bin", i)
		f, err := os.Create(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		h := sha256.New()
		seed := [32]byte{byte(i)}
		_, err = io.CopyN(io.MultiWriter(f, h), rand.NewChaCha8(seed), size)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		list.WriteString(name + "=" + hexOf(h) + "\n")
	}
	for name, content := range map[string]string{"carton.toml": info, "MANIFEST": list.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// diskUsage returns how many bytes of disk a folder takes.
func diskUsage(t testing.TB, dir string) int64 {
	t.Helper()
	var total int64
	err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(name)
		if err != nil {
			return err
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			total += stat.Blocks * 512
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return total
}
