package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/carton-oci/carton-oci/internal/testenv"
)

// The promise: what a release uploads is whole, says what it is, runs, and comes out
// the same for whoever builds it. make release-dry-run names a folder that was made
// for every platform; else one is made here, for this one.

const tried = "v0.1.0-rc.1"

func made(t *testing.T) *release {
	t.Helper()
	if dir := os.Getenv("CARTON_OCI_RELEASE"); dir != "" {
		names, err := filepath.Glob(filepath.Join(dir, program+"_*_kubernetes.tar.gz"))
		if err != nil || len(names) != 1 {
			t.Fatalf("%s holds no release: %v", dir, err)
		}
		number := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(names[0]), program+"_"), "_kubernetes.tar.gz")
		return withSource(t, &release{version: "v" + number, out: dir, platforms: platforms})
	}
	return makeRelease(t, &release{version: tried, out: t.TempDir(), platforms: []platform{{"linux", runtime.GOARCH}}})
}

func makeRelease(t *testing.T, r *release) *release {
	t.Helper()
	r.repository = testenv.Root()
	if err := r.make(t.Context()); err != nil {
		t.Fatal(err)
	}
	return withSource(t, r)
}

// withSource has the release know its commit, and no folder: that is gone.
func withSource(t *testing.T, r *release) *release {
	t.Helper()
	commit, err := git(t.Context(), testenv.Root(), "rev-parse", "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	r.source = &source{commit: commit}
	if r.source.time, err = timeOf(t.Context(), testenv.Root()); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRelease(t *testing.T) {
	r := made(t)
	t.Run("checksums", r.checkChecksums)
	t.Run("image", r.checkImage)
	t.Run("examples", r.checkExamples)
	for _, p := range r.platforms {
		t.Run(p.os+"_"+p.arch, func(t *testing.T) {
			binary := r.unpack(t, p)
			r.checkBinary(t, p, binary)
			r.checkSBOM(t, p, binary)
			if p == (platform{runtime.GOOS, runtime.GOARCH}) {
				r.checkPages(t, binary)
			}
			if line := versionBy(t, p, binary); line != "" && !strings.HasPrefix(line, "carton-oci "+r.version+" go1.") {
				t.Errorf("it calls itself %q, want version %s", line, r.version)
			}
		})
	}
	t.Run("again", func(t *testing.T) {
		again := &release{version: r.version, out: t.TempDir(), platforms: r.platforms}
		if len(r.platforms) > 1 {
			again.goCache = t.TempDir() // nothing of the first build
		}
		makeRelease(t, again)
		want, got := hashes(t, r.out), hashes(t, again.out)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("two builds differ: (-first +second)\n%s", diff)
		}
		testenv.Checked(t, len(want), "files of two builds of one commit are the same")
	})
}

func (r *release) checkChecksums(t *testing.T) {
	cmd := exec.Command(testenv.Program(t, "sha256sum"), "--check", "--strict", "checksums.txt")
	cmd.Dir = r.out
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	want := []string{r.file("kubernetes.tar.gz")}
	for _, p := range r.platforms {
		want = append(want, r.download(p), r.file(p.os+"_"+p.arch+".cdx.json"))
	}
	for _, name := range want {
		if !bytes.Contains(out, []byte(filepath.Base(name)+": OK\n")) {
			t.Errorf("checksums.txt does not list %s", filepath.Base(name))
		}
	}
	if got := bytes.Count(out, []byte(": OK\n")); got != len(want) {
		t.Errorf("checksums.txt lists %d files, want %d", got, len(want))
	}
}

// download is the file that people of a platform download.
func (r *release) download(p platform) string {
	if p.os == "windows" {
		return r.file(p.os + "_" + p.arch + ".zip")
	}
	return r.file(p.os + "_" + p.arch + ".tar.gz")
}

// unpack unpacks what people download, and returns the path of the program.
func (r *release) unpack(t *testing.T, p platform) string {
	t.Helper()
	dir, name := t.TempDir(), program
	raw, err := os.ReadFile(r.download(p))
	if err != nil {
		t.Fatal(err)
	}
	entries := func() []entry { return untarGz(t, raw) }
	if p.os == "windows" {
		name, entries = program+".exe", func() []entry { return unzip(t, raw) }
	}
	modes := map[string]fs.FileMode{}
	for _, e := range entries() {
		modes[e.name] = e.mode
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, e.name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, e.name), e.content, e.mode); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]fs.FileMode{name: 0o755, "CHANGELOG.md": 0o644, "LICENSE": 0o644, "README.md": 0o644, "man/man1/carton-oci.1": 0o644}
	for shell, script := range completions {
		want["completion/"+shell+"/"+script] = 0o644
	}
	for name := range modes {
		if strings.HasPrefix(name, "man/man1/carton-oci-") && strings.HasSuffix(name, ".1") {
			want[name] = 0o644
		}
	}
	if n := len(want) - 9; n < 20 {
		t.Errorf("%d commands have man pages, want 20 and more", n)
	}
	if diff := cmp.Diff(want, modes); diff != "" {
		t.Errorf("files and modes: (-want +got)\n%s", diff)
	}
	return filepath.Join(dir, name)
}

// completions are where packages install scripts of completion.
var completions = map[string]string{
	"bash": "carton-oci", "zsh": "_carton-oci", "fish": "carton-oci.fish", "powershell": "carton-oci.ps1",
}

// checkPages wants what lies beside the program to be what that prints, and of its
// version.
func (r *release) checkPages(t *testing.T, binary string) {
	t.Helper()
	for shell, script := range completions {
		got, err := os.ReadFile(filepath.Join(filepath.Dir(binary), "completion", shell, script))
		if err != nil {
			t.Fatal(err)
		}
		if want, err := exec.Command(binary, "completion", shell).Output(); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s completes by another script than the program prints: %v", shell, err)
		}
	}
	page, err := os.ReadFile(filepath.Join(filepath.Dir(binary), "man", "man1", "carton-oci-push.1"))
	head, _, _ := strings.Cut(string(page), "\n")
	day, version := r.source.time.Format(time.DateOnly), strings.ReplaceAll(r.version, "-", `\-`)
	if err != nil || !strings.Contains(head, day) || !strings.Contains(head, version) {
		t.Errorf("the man page of push begins with %q, %v, want %s of %s", head, err, version, day)
	}
}

func untarGz(t *testing.T, raw []byte) []entry {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	var entries []entry
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return entries
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, entry{h.Name, fs.FileMode(h.Mode), h.Uid, h.Gid, content})
	}
}

func unzip(t *testing.T, raw []byte) []entry {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	var entries []entry
	for _, f := range z.File {
		content, err := fs.ReadFile(z, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, entry{name: f.Name, mode: f.Mode(), content: content})
	}
	return entries
}

// checkBinary looks at what the linker says of the program.
func (r *release) checkBinary(t *testing.T, p platform, binary string) {
	t.Helper()
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{"version": info.Main.Version}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	for key, want := range map[string]string{
		"version": r.version, "GOOS": p.os, "GOARCH": p.arch, "CGO_ENABLED": "0", "-trimpath": "true",
		"vcs.revision": r.source.commit, "vcs.modified": "false",
	} {
		if settings[key] != want {
			t.Errorf("%s: got %q, want %q", key, settings[key], want)
		}
	}
}

// versionBy runs the program and returns what it calls itself, "" where nothing
// here runs it.
func versionBy(t *testing.T, p platform, binary string) string {
	t.Helper()
	run := []string{binary}
	switch emulator := map[platform]string{{"linux", "amd64"}: "qemu-x86_64", {"linux", "arm64"}: "qemu-aarch64"}[p]; {
	case p == platform{runtime.GOOS, runtime.GOARCH}:
	case emulator == "":
		return ""
	default:
		run = []string{testenv.Program(t, emulator), binary}
	}
	line, err := output(exec.Command(run[0], append(run[1:], "version")...))
	if err != nil {
		t.Error(err)
	}
	return line
}

// hashes are the sha256 of every file below a folder.
func hashes(t *testing.T, dir string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		sum, err := sha256Of(name)
		rel, _ := filepath.Rel(dir, name)
		sums[filepath.ToSlash(rel)] = string(hexOf(sum))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

var imageLine = regexp.MustCompile(`(?m)^\s*(?:- )?image: (\S*carton-oci\S*)$`)

// checkExamples wants every manifest to name the image by its digest.
func (r *release) checkExamples(t *testing.T) {
	raw, err := os.ReadFile(r.file("kubernetes.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	want := imageName + ":" + r.version[1:] + "@" + r.indexDigest(t)
	var using []string
	for _, e := range untarGz(t, raw) {
		for _, m := range imageLine.FindAllSubmatch(e.content, -1) {
			using = append(using, strings.TrimPrefix(e.name, "kubernetes/"))
			if string(m[1]) != want {
				t.Errorf("%s: got the image %s, want %s", e.name, m[1], want)
			}
		}
	}
	if want := []string{"promote.yaml", "unpack.yaml", "verify.yaml"}; !slices.Equal(using, want) {
		t.Errorf("the image is used by %v, want %v", using, want)
	}
}

func TestReleasesThatAreRefused(t *testing.T) {
	for version, want := range map[string]string{
		"0.1.0": "want one such as v0.1.0", "v1": "want one such as v0.1.0", "v1.0.0+cu118": "want one such as v0.1.0",
		"v0.1.0\n": "want one such as v0.1.0", "v987.0.0": "action.yml installs another version than v987.0.0",
	} {
		r := &release{repository: testenv.Root(), version: version, out: filepath.Join(t.TempDir(), "dist")}
		if err := r.make(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", version, err, want)
		}
	}
	dir := t.TempDir()
	for _, args := range [][]string{
		{"init", "-q"},
		{"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "one"},
		{"tag", "v0.2.0"},
		{"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "two"},
	} {
		if _, err := git(t.Context(), dir, args...); err != nil {
			t.Fatal(err)
		}
	}
	r := &release{repository: dir, version: "v0.2.0", out: filepath.Join(t.TempDir(), "dist")}
	if err := r.make(t.Context()); err == nil || !strings.Contains(err.Error(), "check the tag out") {
		t.Errorf("a tag of another commit: got %v, want a refusal", err)
	}
}
