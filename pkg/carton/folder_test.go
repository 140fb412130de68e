package carton_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

// folderOf is an unpacked carton in memory: pairs of path and content, and the
// MANIFEST that lists them.
func folderOf(pairs ...string) fstest.MapFS {
	files := fstest.MapFS{carton.ManifestName: {Data: []byte(manifestOf(pairs...))}}
	for i := 0; i < len(pairs); i += 2 {
		files[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return files
}

// withSymlinks adds symlinks to "model/a", pairs of path and target.
func withSymlinks(pairs ...string) fstest.MapFS {
	listed := []string{"model/a", "weights"}
	for i := 0; i < len(pairs); i += 2 {
		listed = append(listed, pairs[i], "weights")
	}
	files := folderOf(listed...)
	for i := 0; i < len(pairs); i += 2 {
		files[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1]), Mode: fs.ModeSymlink | 0o777}
	}
	return files
}

func TestFolder(t *testing.T) {
	files := folderOf(
		carton.InfoName, minimalInfo, "model/a=b", "equals", "model/.hidden/empty", "",
		"model/\u6a21\u578b", "beyond ASCII", "toplevel", "x",
	)
	files["an/empty/folder"] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
	src, err := carton.OpenFS(files)
	if err != nil {
		t.Fatal(err)
	}
	members, err := src.Members(t.Context())
	if err != nil || len(members) != 5 {
		t.Errorf("got %d members, %v; want 5", len(members), err)
	}
	for _, m := range members {
		if m.Place != carton.PlaceFile || m.Target != "" {
			t.Errorf("got %+v, want a file", m)
		}
	}
	if err := readMembers(t.Context(), src); err != nil {
		t.Error(err)
	}
	if src.Links() != nil {
		t.Errorf("got LINKS %v, want none", src.Links())
	}
}

func TestFolderSymlinks(t *testing.T) {
	_, err := carton.OpenFS(withSymlinks(
		"model/l", "a", "model/snapshots/1/x", "../../a", "model/blobs/../chain", "./snapshots/../l",
		"model/up", "../model/a",
	))
	if err == nil {
		t.Fatal("a path with .. was accepted")
	}
	src, err := carton.OpenFS(withSymlinks(
		"model/l", "a", "model/snapshots/1/x", "../../a", "model/chain", "./snapshots/../l", "model/up", "../model/a",
	))
	if err != nil {
		t.Fatal(err)
	}
	members, err := src.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"model/a": "", "model/l": "a", "model/snapshots/1/x": "../../a", "model/chain": "l", "model/up": "a"}
	for _, m := range members {
		if target, ok := want[m.Path]; !ok || m.Target != target || m.Size != 7 || m.Place != carton.PlaceFile {
			t.Errorf("got %+v, want a target of %q and 7 bytes", m, target)
		}
		if b, err := carton.ReadMember(t.Context(), src, m.Path, 100); err != nil || string(b) != "weights" {
			t.Errorf("%s: got %q, %v", m.Path, b, err)
		}
	}
}

// A mounted image of a carton is the carton, with a symlink that is no member.
func TestTheFolderOfAMountedImage(t *testing.T) {
	link := func(target string) fstest.MapFS {
		files := folderOf("model/a", "weights")
		files[carton.ModelsName] = &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink | 0o777}
		return files
	}
	src, err := carton.OpenFS(link("model"))
	if err != nil {
		t.Fatal(err)
	}
	members, err := src.Members(t.Context())
	if err != nil || len(members) != 1 || members[0].Path != "model/a" {
		t.Errorf("got %+v, %v, want model/a alone", members, err)
	}
	if _, err := src.Open(t.Context(), carton.ModelsName); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open %s: got %v", carton.ModelsName, err)
	}
	for name, files := range map[string]fstest.MapFS{
		"to another folder":   link("misc"),
		"out of the folder":   link("../model"),
		"with a slash":        link("model/"),
		"a file of that name": with(folderOf("model/a", ""), carton.ModelsName, "model"),
		"further in":          withSymlinks("model/l", "a", "model/models", ".."),
	} {
		if _, err := carton.OpenFS(files); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

func TestBrokenFolders(t *testing.T) {
	for name, c := range map[string]struct {
		files fs.FS
		want  error
		text  string
	}{
		"no MANIFEST":                 {fstest.MapFS{"model/a": {}}, carton.ErrFormat, "MANIFEST: is missing"},
		"MANIFEST is a folder":        {fstest.MapFS{"MANIFEST/a": {}}, carton.ErrFormat, "not a regular file"},
		"MANIFEST is a symlink":       {fstest.MapFS{"MANIFEST": {Data: []byte("a"), Mode: fs.ModeSymlink}, "a": {}}, carton.ErrFormat, "not a regular file"},
		"MANIFEST over the limit":     {fstest.MapFS{"MANIFEST": {Data: make([]byte, carton.MaxManifestBytes+1)}}, carton.ErrLimit, "larger than"},
		"file that is not listed":     {with(folderOf("a", ""), "m.partial", ""), carton.ErrFormat, "m.partial: is in the folder, but is not listed in MANIFEST"},
		"file that is not there":      {with(folderOf("a", ""), "MANIFEST", manifestOf("a", "", "b", "")), carton.ErrFormat, "b: is listed"},
		"broken LINKS":                {with(folderOf("a", ""), "LINKS", "no TOML"), carton.ErrFormat, "LINKS"},
		"LINKS of version 2":          {with(folderOf("a", ""), "LINKS", "version = 2\n[urls]\n"), carton.ErrVersion, "LINKS"},
		"names that differ in case":   {folderOf("model/a", "", "model/A", ""), carton.ErrInsecurePath, "only in case"},
		"control character":           {with(folderOf("a", ""), "a\nb", ""), carton.ErrInsecurePath, "control character"},
		"folder with a backslash":     {with(folderOf("a", ""), `a\b/c`, ""), carton.ErrInsecurePath, "backslash"},
		"pipe":                        {mode(folderOf("a", ""), "a", fs.ModeNamedPipe), carton.ErrFormat, "neither a file"},
		"device":                      {mode(folderOf("a", ""), "a", fs.ModeDevice), carton.ErrFormat, "neither a file"},
		"symlink out of the carton":   {withSymlinks("model/l", "../../etc/passwd"), carton.ErrInsecurePath, "not inside model/"},
		"symlink out of model/":       {withSymlinks("model/l", "../x"), carton.ErrInsecurePath, "not inside model/"},
		"absolute symlink":            {withSymlinks("model/l", "/etc/passwd"), carton.ErrInsecurePath, "absolute"},
		"symlink outside of model/":   {withSymlinks("l", "model/a"), carton.ErrInsecurePath, "outside of model/"},
		"symlink to a folder":         {withSymlinks("model/x/l", "../d", "model/d/m", "../a"), carton.ErrFormat, "to the folder"},
		"symlink to nothing":          {withSymlinks("model/l", "nothing"), carton.ErrFormat, "not in the carton"},
		"symlinks in a circle":        {withSymlinks("model/l", "m", "model/m", "l"), carton.ErrInsecurePath, "does not end"},
		"empty symlink":               {withSymlinks("model/l", ""), carton.ErrFormat, "no target"},
		"symlink of another hash":     {with(withSymlinks("model/l", "a"), "MANIFEST", manifestOf("model/a", "weights", "model/l", "a")), carton.ErrChecksum, "another hash"},
		"symlinks that can't be read": {struct{ fs.FS }{withSymlinks("model/l", "a")}, fs.ErrInvalid, "readlink"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := carton.OpenFS(c.files)
			checkError(t, err, c.want, c.text)
		})
	}
}

func with(files fstest.MapFS, name, content string) fstest.MapFS {
	files[name] = &fstest.MapFile{Data: []byte(content)}
	return files
}

func mode(files fstest.MapFS, name string, mode fs.FileMode) fstest.MapFS {
	files[name].Mode = mode
	return files
}

// unpacked writes a folder to the disk.
func unpacked(t *testing.T, files fs.FS) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "carton")
	if err := os.CopyFS(dir, files); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestOpenDir(t *testing.T) {
	dir := unpacked(t, withSymlinks("model/l", "a"))
	src, err := carton.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := readMembers(t.Context(), src); err != nil {
		t.Error(err)
	}
	if err := src.Close(); err != nil {
		t.Error(err)
	}
	if err := readMembers(t.Context(), src); err == nil {
		t.Error("reading after Close: no error")
	}
	if _, err := carton.OpenDir(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want %v", err, fs.ErrNotExist)
	}
	_, err = carton.OpenDir(filepath.Join(dir, "model"))
	checkError(t, err, carton.ErrFormat, "MANIFEST: is missing")
}

// Whatever happens to a file between opening and reading, what was promised is
// read or an error.
func TestFolderThatChanges(t *testing.T) {
	for name, change := range map[string]func(file string) error{
		"longer":  func(file string) error { return os.WriteFile(file, []byte("weights and more"), 0o644) },
		"shorter": func(file string) error { return os.WriteFile(file, []byte("we"), 0o644) },
		"other":   func(file string) error { return os.WriteFile(file, []byte("WEIGHTS"), 0o644) },
	} {
		dir := unpacked(t, folderOf("model/a", "weights"))
		src, err := carton.OpenDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := change(filepath.Join(dir, "model/a")); err != nil {
			t.Fatal(err)
		}
		_, err = carton.ReadMember(t.Context(), src, "model/a", 1000)
		t.Run(name, func(t *testing.T) { checkError(t, err, carton.ErrChecksum, "model/a") })
		src.Close()
	}
}

// A file that becomes a symlink out of the folder is not followed.
func TestFolderSwappedForASymlink(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	writeFile(t, outside, "a", "weights")
	for name, swap := range map[string]func(dir string) error{
		"the file": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "model/a")), os.Symlink(filepath.Join(outside, "a"), filepath.Join(dir, "model/a")))
		},
		"its folder": func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, "model")), os.Symlink(outside, filepath.Join(dir, "model")))
		},
	} {
		dir := unpacked(t, folderOf("model/a", "weights"))
		src, err := carton.OpenDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := swap(dir); err != nil {
			t.Fatal(err)
		}
		if b, err := carton.ReadMember(t.Context(), src, "model/a", 1000); err == nil {
			t.Errorf("%s: read %q from outside", name, b)
		}
		src.Close()
	}
}

// noReaderAt hides what an fs.File can do beyond reading.
type noReaderAt struct{ fstest.MapFS }

func (f noReaderAt) Open(name string) (fs.File, error) {
	file, err := f.MapFS.Open(name)
	if info, statErr := fs.Stat(f.MapFS, name); statErr == nil && info.Mode().IsRegular() && err == nil {
		return struct{ fs.File }{file}, nil
	}
	return file, err
}

func TestRangeOfAFileThatOnlyReads(t *testing.T) {
	src, err := carton.OpenFS(noReaderAt{folderOf("model/a", "0123456789")})
	if err != nil {
		t.Fatal(err)
	}
	r, err := src.OpenRange(t.Context(), "model/a", 3, 4)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r); err != nil || string(b) != "3456" {
		t.Errorf("got %q, %v; want 3456", b, err)
	}
}
