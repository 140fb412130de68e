package carton_test

import (
	"archive/zip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// foreignTree writes an unpacked carton with what tells zip writers apart:
// names beyond ASCII, an empty file, a symlink, something to compress.
func foreignTree(t *testing.T) (dir string, manifest *carton.Manifest) {
	t.Helper()
	dir = t.TempDir()
	for name, content := range map[string]string{
		carton.InfoName:                 minimalInfo,
		"model/a":                       strings.Repeat("weights ", 50_000),
		"model/empty":                   "",
		"model/.hidden/a=b":             "equals",
		"model/gr\u00f6\u00dfe/\u6a21":  "beyond ASCII",
		"misc/incompressible":           hashOf("a") + hashOf("b"),
		"tensor_data/" + "index.toml":   "tensor = []\n",
		"model/deep/er/and/deep/er/x.y": "x",
	} {
		writeFile(t, dir, name, content)
	}
	testenv.Symlink(t, "../a", filepath.Join(dir, "model/deep/link"))
	m, err := cartontest.Manifest(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, carton.ManifestName, string(m.Bytes()))
	return dir, m
}

func writeFile(t testing.TB, dir, name, content string) {
	t.Helper()
	name = filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// What other programs make of an unpacked carton is a carton.
func TestZipsOfOtherPrograms(t *testing.T) {
	dir, manifest := foreignTree(t)
	for name, args := range map[string][]string{
		"zip":                        {"zip", "-q", "-r", "-y", "OUT", "."},
		"zip of stored members":      {"zip", "-q", "-r", "-y", "-0", "OUT", "."},
		"zip -1":                     {"zip", "-q", "-r", "-y", "-1", "OUT", "."},
		"zip -9":                     {"zip", "-q", "-r", "-y", "-9", "OUT", "."},
		"zip without folder entries": {"zip", "-q", "-r", "-y", "-D", "OUT", "."},
		"zip that follows symlinks":  {"zip", "-q", "-r", "OUT", "."},
		"zip to a pipe":              {"sh", "-c", "zip -q -r - . | cat > OUT"},
		"zip -1 to a pipe":           {"sh", "-c", "zip -q -r -1 - . | cat > OUT"},
		"zip with descriptors":       {"zip", "-q", "-r", "-fd", "OUT", "."},
		"zip with zip64":             {"zip", "-q", "-r", "-y", "-fz", "OUT", "."},
		"zip with a comment":         {"sh", "-c", "echo comment | zip -q -r -y -z OUT ."},
		"zip without extra fields":   {"zip", "-q", "-r", "-y", "-X", "OUT", "."},
		"jar":                        {"jar", "cMf", "OUT", "."},
		"jar of stored members":      {"jar", "c0Mf", "OUT", "."},
		"jar to a pipe":              {"sh", "-c", "jar cM . | cat > OUT"},
		"python3":                    {"python3", "-c", pythonZip, "OUT", "0", "file", ""},
		"python3 deflate":            {"python3", "-c", pythonZip, "OUT", "8", "file", ""},
		"python3 with zip64":         {"python3", "-c", pythonZip, "OUT", "8", "file", "zip64"},
		"python3 to a pipe":          {"python3", "-c", pythonZip, "OUT", "8", "pipe", ""},
		"python3 to a pipe, stored":  {"python3", "-c", pythonZip, "OUT", "0", "pipe", ""},
		"python3 to a pipe, zip64":   {"python3", "-c", pythonZip, "OUT", "8", "pipe", "zip64"},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.Program(t, strings.Fields(name)[0])
			out := filepath.Join(t.TempDir(), "m.carton")
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "OUT", out)
			}
			cmd := exec.Command(testenv.Program(t, args[0]), args[1:]...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "LC_ALL=C.UTF-8")
			if b, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, b)
			}
			sameAsTree(t, out, manifest)
		})
	}
}

// pythonZip walks the working folder, as a script would.
const pythonZip = `
import os, sys, zipfile
out, method, to, zip64 = sys.argv[1:]
class Pipe:
    def __init__(self, f): self.f = f
    def write(self, b): return self.f.write(b)
    def flush(self): self.f.flush()
f = open(out, 'wb')
z = zipfile.ZipFile(Pipe(f) if to == 'pipe' else f, 'w', int(method))
for folder, _, files in os.walk('.'):
    for name in files:
        path = os.path.join(folder, name)
        info = zipfile.ZipInfo.from_file(path)
        info.compress_type = int(method)
        with open(path, 'rb') as r, z.open(info, 'w', force_zip64=bool(zip64)) as w:
            w.write(r.read())
z.comment = b'made by Python'
z.close()
f.close()
`

// sameAsTree opens a zip and wants every member in it, of the right hash.
func sameAsTree(t *testing.T, name string, want *carton.Manifest) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	src, err := openBoth(t, b)
	if err != nil {
		t.Fatal(err)
	}
	if got := src.Manifest().ModelHash(); got != want.ModelHash() {
		t.Errorf("model hash: got %s, want %s", got, want.ModelHash())
	}
	members, err := src.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(members) != len(want.Entries()) {
		t.Errorf("got %d members, want %d", len(members), len(want.Entries()))
	}
}

// Go's writer streams, and marks the sizes of a large member in a way of its
// own; the other half of that test is the zip64 field of three among oddZips.
func TestZipsOfGo(t *testing.T) {
	dir, manifest := foreignTree(t)
	for name, method := range map[string]uint16{"stored": zip.Store, "deflate": zip.Deflate} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "m.carton")
			f, err := os.Create(out)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			w := zip.NewWriter(f)
			for _, e := range slices.Concat(manifest.Entries(), []carton.Entry{{Path: carton.ManifestName}}) {
				b, err := os.ReadFile(filepath.Join(dir, e.Path))
				if err != nil {
					t.Fatal(err)
				}
				m, err := w.CreateHeader(&zip.FileHeader{Name: e.Path, Method: method})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := m.Write(b); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			sameAsTree(t, out, manifest)
		})
	}
}

// Symlinks that a program stores as such come back as such.
func TestSymlinksOfInfoZIP(t *testing.T) {
	program := testenv.Program(t, "zip")
	dir, _ := foreignTree(t)
	out := filepath.Join(t.TempDir(), "m.carton")
	cmd := exec.Command(program, "-q", "-r", "-y", out, ".")
	cmd.Dir = dir
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	src, err := carton.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	members, err := src.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(members, func(m carton.Member) bool { return m.Path == "model/deep/link" })
	if i < 0 || members[i].Target != "../a" || members[i].Size != 400_000 {
		t.Fatalf("got %+v, want a symlink to ../a of 400000 bytes", members)
	}
	r, err := src.Open(t.Context(), "model/deep/link")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if b, err := io.ReadAll(r); err != nil || len(b) != 400_000 {
		t.Errorf("got %d bytes, %v; want the target's 400000", len(b), err)
	}
}
