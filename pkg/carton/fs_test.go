package carton_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

func TestFSOfEverySource(t *testing.T) {
	files := withSymlinks("model/deep/l", "../a")
	files[carton.InfoName] = &fstest.MapFile{Data: []byte(minimalInfo)}
	files["model/empty"] = &fstest.MapFile{}
	files[carton.ManifestName] = &fstest.MapFile{Data: []byte(manifestOf(
		carton.InfoName, minimalInfo, "model/a", "weights", "model/deep/l", "weights", "model/empty", "",
	))}
	folder, err := carton.OpenDir(unpacked(t, files))
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	memory, err := carton.OpenFS(files)
	if err != nil {
		t.Fatal(err)
	}
	z := zipOf(carton.InfoName, minimalInfo, "model/a", "weights", "model/deep/l", "weights", "model/empty", "")
	var link rawZip
	z.files[2] = link.add("model/deep/l", "../a")
	z.files[2].entry.attributes = modeSymlink
	z.files[1].compress(t, 93)
	zip, err := openBoth(t, z.bytes())
	if err != nil {
		t.Fatal(err)
	}
	other := cartontest.New(map[string][]byte{"model/a": []byte("weights"), "model/empty": nil}, map[string]string{"model/deep/l": "../a"})
	for name, src := range map[string]carton.Source{"zip": zip, "folder": folder, "in memory": memory, "another source": other} {
		t.Run(name, func(t *testing.T) {
			fsys := carton.FS(src)
			if err := fstest.TestFS(fsys, carton.InfoName, carton.ManifestName, "model/a", "model/deep/l", "model/empty"); err != nil {
				t.Error(err)
			}
			if b, err := fs.ReadFile(fsys, "model/deep/l"); err != nil || string(b) != "weights" {
				t.Errorf("through the symlink: got %q, %v", b, err)
			}
			if target, err := fs.ReadLink(fsys, "model/deep/l"); err != nil || target != "../a" {
				t.Errorf("symlink: got %q, %v; want ../a", target, err)
			}
			if info, err := fs.Stat(fsys, "model/deep/l"); err != nil || info.Size() != 7 || info.Name() != "l" || !info.Mode().IsRegular() {
				t.Errorf("stat: got %v, %v; want a file l of 7 bytes", info, err)
			}
			if _, err := fs.ReadLink(fsys, "model/a"); !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("readlink of a file: got %v", err)
			}
			if _, err := fsys.Open("model/none"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("got %v, want %v", err, fs.ErrNotExist)
			}
		})
	}
}

// What FS shows is what a carton unpacks to: it opens as a folder, with the
// same model hash.
func TestFSIsAFolder(t *testing.T) {
	zip, err := openBoth(t, linked("model/l", "a").bytes())
	if err != nil {
		t.Fatal(err)
	}
	folder, err := carton.OpenFS(carton.FS(zip))
	if err != nil {
		t.Fatal(err)
	}
	if err := readMembers(t.Context(), folder); err != nil {
		t.Error(err)
	}
	dir := filepath.Join(t.TempDir(), "c")
	if err := os.CopyFS(dir, carton.FS(zip)); err != nil {
		t.Fatal(err)
	}
	disk, err := carton.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	if !bytes.Equal(disk.Manifest().Bytes(), zip.Manifest().Bytes()) {
		t.Error("MANIFEST has changed")
	}
}

func TestFSGivesNoUnverifiedEnd(t *testing.T) {
	z := good()
	z.files[0].packed[0]++
	b := z.bytes()
	src, err := carton.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = fs.ReadFile(carton.FS(src), "model/a")
	checkError(t, err, carton.ErrChecksum, "got sha256")
}

func TestFSOfASourceThatFails(t *testing.T) {
	broken := errors.New("registry is away")
	fsys := carton.FS(cartontest.New(nil, nil, cartontest.WithMembersError(broken)))
	if _, err := fsys.Open("."); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

func TestReferenceCartonAsFS(t *testing.T) {
	src, err := carton.Open(testenv.Foreign(t, "carton/test.carton"))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if err := fstest.TestFS(carton.FS(src), "model/main.py", "model/.carton/carton.lock"); err != nil {
		t.Error(err)
	}
	m, err := carton.HashFS(t.Context(), carton.FS(src))
	if err != nil {
		t.Fatal(err)
	}
	if m.ModelHash() != testCartonHash {
		t.Errorf("regenerated model hash: got %s, want %s", m.ModelHash(), testCartonHash)
	}
}
