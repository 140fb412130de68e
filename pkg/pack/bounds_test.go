package pack_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/pack"
)

func packFolder(t *testing.T, dir string) (*pack.Carton, error) {
	t.Helper()
	c, err := pack.Open(t.Context(), []string{dir}, noop)
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

func put(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestSymlinksToFoldersMultiply: forty symlinks that would make 5⁸ folders are
// refused, and soon.
func TestSymlinksToFoldersMultiply(t *testing.T) {
	testenv.Heavy(t)
	dir := t.TempDir()
	put(t, filepath.Join(dir, "8", "a"), "a")
	for level := range 8 {
		folder := filepath.Join(dir, fmt.Sprint(level))
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			testenv.Symlink(t, fmt.Sprintf("../%d", level+1), filepath.Join(folder, fmt.Sprint("l", i)))
		}
	}
	if _, err := packFolder(t, dir); !errors.Is(err, carton.ErrLimit) || !strings.Contains(err.Error(), "symlinks to folders") {
		t.Errorf("got %v, want ErrLimit", err)
	}
}

// TestLongChainOfSymlinks: symlinks are followed as far as the format has it.
func TestLongChainOfSymlinks(t *testing.T) {
	chain := func(n int) (string, string) {
		dir := t.TempDir()
		put(t, filepath.Join(dir, "sub", "file"), "content")
		last := "sub/file"
		for i := range n {
			name := fmt.Sprintf("l%02d", i)
			testenv.Symlink(t, last, filepath.Join(dir, name))
			last = name
		}
		return dir, last
	}
	dir, last := chain(30)
	c, err := packFolder(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	b, err := carton.ReadMember(t.Context(), c, "model/"+last, 100)
	if err != nil || string(b) != "content" {
		t.Errorf("got %q, %v", b, err)
	}
	dir, _ = chain(carton.MaxSymlinks + 1)
	if _, err := packFolder(t, dir); !errors.Is(err, carton.ErrInsecurePath) {
		t.Errorf("got %v, want ErrInsecurePath for a chain that is too long", err)
	}
}

// TestSecretsAreNotPacked: files that hold credentials are refused in a folder.
func TestSecretsAreNotPacked(t *testing.T) {
	for name, secret := range map[string]bool{
		".env": true, "sub/.ENV": true, ".env.production": true, ".aws/credentials": true, "a/.netrc": true, "id_ed25519": true, ".ssh/known": true,
		".huggingface/token": true, ".cache/huggingface/token": true, ".git-credentials": true,
		"env": false, ".env.example": false, "credentials": false, "token": false, "id_rsa.pub": false, "tokenizer/token": false,
	} {
		dir := t.TempDir()
		put(t, filepath.Join(dir, "weights.bin"), "a")
		put(t, filepath.Join(dir, name), "SECRET=1")
		_, err := packFolder(t, dir)
		if secret && (!errors.Is(err, carton.ErrInsecurePath) || !strings.Contains(err.Error(), "credentials")) {
			t.Errorf("%s: got %v, want it refused", name, err)
		}
		if !secret && err != nil {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestManyFilesOfOneFolder: 300 shards are one open folder.
func TestManyFilesOfOneFolder(t *testing.T) {
	fds := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	dir := t.TempDir()
	var names []string
	for i := range 300 {
		names = append(names, filepath.Join(dir, fmt.Sprintf("%d.bin", i)))
		put(t, names[i], fmt.Sprint(i))
	}
	before := fds()
	c, err := pack.Open(t.Context(), names, noop)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n := fds() - before; n > 20 {
		t.Errorf("%d descriptors are open", n)
	}
}

// TestReorderedArraysAreBounded: what has to be put in order is held in memory,
// and so its sum is limited.
func TestReorderedArraysAreBounded(t *testing.T) {
	testenv.Heavy(t)
	dir := t.TempDir()
	text := "{'descr': '<f4', 'fortran_order': True, 'shape': (4096, 2048), }"
	text += strings.Repeat(" ", 63-(10+len(text))%64) + "\n"
	var inputs []pack.TestValue
	for i := range 3 { // 32 MiB each
		name := filepath.Join(dir, fmt.Sprintf("%d.npy", i))
		put(t, name, "\x93NUMPY\x01\x00"+string([]byte{byte(len(text)), 0})+text)
		if err := os.Truncate(name, int64(10+len(text)+4096*2048*4)); err != nil {
			t.Fatal(err)
		}
		inputs = append(inputs, pack.TestValue{Name: fmt.Sprint("x", i), From: name})
	}
	put(t, filepath.Join(dir, "m", "a"), "a")
	o := noop
	o.AddSelfTests = []pack.Test{{Inputs: inputs}}
	_, err := pack.Open(t.Context(), []string{filepath.Join(dir, "m")}, o)
	if !errors.Is(err, carton.ErrLimit) || !strings.Contains(err.Error(), "Fortran") {
		t.Errorf("got %v, want ErrLimit", err)
	}
}

// TestReadingAMemberDoesNotCostAManifest: of three thousand files, each is read for
// what it is; packing them is linear.
func TestReadingAMemberDoesNotCostAManifest(t *testing.T) {
	testenv.Heavy(t)
	dir := t.TempDir()
	for i := range 3000 {
		put(t, filepath.Join(dir, fmt.Sprintf("%d.txt", i)), "x")
	}
	c, err := packFolder(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		r, err := c.OpenRange(t.Context(), "model/7.txt", 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
	}
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) / 100; got > 64<<10 {
		t.Errorf("got %d bytes allocated for each, want at most 64 KiB; MANIFEST has %d", got, c.Manifest().Len())
	}
}
