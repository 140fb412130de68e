package pack_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/pack"
)

func TestSymlinks(t *testing.T) {
	c := open(t, noop, tree(t, map[string]string{
		"blobs/ab":           "weights",
		"snap/1/model.bin":   "-> ../../blobs/ab",
		"snap/1/again.bin":   "-> model.bin",
		"snap/1/odd.bin":     "-> ../../blobs/../blobs/./ab",
		"current":            "-> snap/1",  // a folder: expanded
		"twice":              "-> current", // through another
		"via.bin":            "-> current/model.bin",
		"lib/.git/objects/x": "left out",
		"lib/x":              "-> .git/objects/x", // its target is left out
		"zero":               "",
		"nought":             "-> zero",
	}))
	wantListing(t, c, "carton.toml", "model/blobs/ab",
		"model/current/again.bin -> model.bin", "model/current/model.bin", "model/current/odd.bin",
		"model/lib/x", "model/nought -> zero",
		"model/snap/1/again.bin -> model.bin", "model/snap/1/model.bin -> ../../blobs/ab", "model/snap/1/odd.bin -> ../../blobs/ab",
		"model/twice/again.bin -> model.bin", "model/twice/model.bin", "model/twice/odd.bin",
		"model/via.bin -> current/model.bin", "model/zero", "tensor_data/index.toml")
	for name, want := range map[string]string{
		"model/current/model.bin": "weights", "model/twice/again.bin": "weights", "model/lib/x": "left out", "model/nought": "",
	} {
		if got := read(t, c, name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	report, err := carton.Verify(t.Context(), c, carton.VerifyOptions{})
	if err != nil || !report.OK() {
		t.Errorf("got %+v, %v", report, err)
	}
}

func TestWhatCanNotBePackedIsRefusedByName(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, target, want string
	}{
		{"abs", outside, "abs: is a symlink to " + outside + ", outside of what is packed"},
		{"sub/up", "../../outside", "sub/up: is a symlink to ../../outside, outside"},
		{"sub/updir", "../..", "sub/updir: is a symlink to ../.., outside"},
		{"dangling", "nowhere", "dangling: is a symlink to nowhere, which is not there"},
		{"self", "self", "self: is a symlink to self"},
		{"round", ".", "round: is a symlink to a folder around it"},
		{"sub/deep/round", "../..", "sub/deep/round: is a symlink to a folder around it"},
	} {
		dir := tree(t, map[string]string{"a": "x", "sub/deep/b": "y", c.name: "-> " + c.target})
		refused(t, noop, carton.ErrInsecurePath, c.want, dir)
	}
	// A symlink that leads outside by way of one that does not.
	dir := tree(t, map[string]string{"a": "x", "in": "-> sub", "sub/x": "y", "out": "-> in/../../outside"})
	refused(t, noop, carton.ErrInsecurePath, "out: is a symlink to in/../../outside", dir)
}

func TestNamesAreChecked(t *testing.T) {
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		testenv.NotChecked(t, "the file system takes such names for one, or has none such")
	}
	for _, c := range []struct {
		files []string
		want  string
	}{
		{[]string{"A.bin", "a.bin"}, "only in case"},
		{[]string{"Sub/a", "sub/b"}, "only in case"},
		{[]string{"caf\u00e9", "cafe\u0301"}, "normalisation"},
		{[]string{"a\\b"}, "backslash"},
		{[]string{"a\nb"}, "control character"},
		{[]string{"\xff"}, "not UTF-8"},
		{[]string{"bad\\folder/x"}, "backslash"},
	} {
		files := map[string]string{}
		for _, f := range c.files {
			files[f] = "x"
		}
		refused(t, noop, carton.ErrInsecurePath, c.want, tree(t, files))
	}
	c := open(t, noop, tree(t, map[string]string{"con": "x"}))
	wantWarnings(t, c, "Windows")
}

func TestAnEmptyFolderHoldsNoModel(t *testing.T) {
	refused(t, noop, carton.ErrFormat, "holds no files", tree(t, map[string]string{"e/": "", ".git/HEAD": "x"}))
	refused(t, noop, os.ErrNotExist, "", filepath.Join(t.TempDir(), "none"))
	dir := tree(t, map[string]string{"a": "x"})
	refused(t, noop, pack.ErrOptions, "want one folder, or files", dir, dir)
}

func TestManyFilesCostLittle(t *testing.T) {
	testenv.Heavy(t)
	files := map[string]string{}
	for i := range 2000 {
		files[fmt.Sprintf("d%d/f%d", i%50, i)] = fmt.Sprint(i)
	}
	c := open(t, noop, tree(t, files))
	if n := len(listing(t, c)); n != 2002 {
		t.Errorf("got %d members, want 2002", n)
	}
}

func TestAFileNamedBySymlinkIsPacked(t *testing.T) {
	dir := tree(t, map[string]string{"real.onnx": "onnx"})
	link := filepath.Join(t.TempDir(), "model.onnx")
	testenv.Symlink(t, filepath.Join(dir, "real.onnx"), link)
	c := open(t, noop, link)
	if got := read(t, c, "model/model.onnx"); got != "onnx" {
		t.Errorf("got %q", got)
	}
}
