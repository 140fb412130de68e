package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// entry is a file or folder of an archive.
type entry struct {
	name     string // with a slash at the end for a folder
	mode     fs.FileMode
	uid, gid int
	content  []byte
}

// archive writes what people download: the program, documents, man pages and scripts
// of completion.
func (r *release) archive(p platform, binary string) error {
	content, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	entries := []entry{{name: filepath.Base(binary), mode: 0o755, content: content}}
	for _, name := range []string{"CHANGELOG.md", "LICENSE", "README.md"} {
		content, err := os.ReadFile(filepath.Join(r.source.dir, name))
		if err != nil {
			return err
		}
		entries = append(entries, entry{name: name, mode: 0o644, content: content})
	}
	entries = append(entries, r.pages...)
	suffix := p.os + "_" + p.arch
	if p.os == "windows" {
		return r.write(suffix+".zip", func() ([]byte, error) { return zipOf(entries, r.source.time) })
	}
	return r.write(suffix+".tar.gz", func() ([]byte, error) { return tarGz(entries, r.source.time) })
}

// write writes one file of the release.
func (r *release) write(suffix string, content func() ([]byte, error)) error {
	b, err := content()
	if err != nil {
		return err
	}
	return os.WriteFile(r.file(suffix), b, 0o644)
}

// tarOf makes a tar with nothing of this machine in it.
func tarOf(entries []entry, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{
			Name: e.name, Mode: int64(e.mode), Uid: e.uid, Gid: e.gid, Size: int64(len(e.content)),
			ModTime: at, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR,
		}
		if strings.HasSuffix(e.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

func gzipOf(content []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.DefaultCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

func tarGz(entries []entry, at time.Time) ([]byte, error) {
	content, err := tarOf(entries, at)
	if err != nil {
		return nil, err
	}
	return gzipOf(content)
}

func zipOf(entries []entry, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at}
		h.SetMode(e.mode)
		f, err := w.CreateHeader(h)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
		if _, err := f.Write(e.content); err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// imageName is the image that the examples name, and where a release pushes it.
const imageName = "ghcr.io/carton-oci/carton-oci"

// writeExamples writes examples/kubernetes with the image named by its digest. Those
// of the repository can't name it: the digest depends on the commit that they are in.
func (r *release) writeExamples(digest string) error {
	var entries []entry
	examples := os.DirFS(filepath.Join(r.source.dir, "examples"))
	err := fs.WalkDir(examples, "kubernetes", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(examples, name)
		content = exampleImage.ReplaceAll(content, []byte("image: "+imageName+":"+r.number()+"@"+digest))
		entries = append(entries, entry{name: name, mode: 0o644, content: content})
		return err
	})
	if err != nil {
		return err
	}
	return r.write("kubernetes.tar.gz", func() ([]byte, error) { return tarGz(entries, r.source.time) })
}

// notes is what CHANGELOG.md says of the version, which must be the one that the
// action installs.
func (r *release) notes() (string, error) {
	raw, err := os.ReadFile(filepath.Join(r.source.dir, "CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	action, err := os.ReadFile(filepath.Join(r.source.dir, "action.yml"))
	if err != nil {
		return "", err
	}
	if !strings.Contains(r.version, "-") && !strings.Contains(string(action), "default: "+r.version+"\n") {
		return "", fmt.Errorf("action.yml installs another version than %s by default", r.version)
	}
	return section(string(raw), r.number())
}

// section returns the text below the heading of a version. A version before another,
// such as 0.1.0-rc.1, needs none.
func section(changelog, number string) (string, error) {
	for part := range strings.SplitSeq(changelog, "\n## ") {
		if head, text, _ := strings.Cut(part, "\n"); strings.HasPrefix(head, "["+number+"]") {
			return strings.TrimSpace(text) + "\n", nil
		}
	}
	if strings.Contains(number, "-") {
		return "A trial: CHANGELOG.md has no part for " + number + ".\n", nil
	}
	return "", fmt.Errorf("CHANGELOG.md has no part that begins with ## [%s]", number)
}

// writeChecksums writes the sha256 of every file beside it that is uploaded.
func (r *release) writeChecksums() error {
	files, err := filepath.Glob(r.file("*"))
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, name := range files { // sorted
		sum, err := sha256Of(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sum, filepath.Base(name))
	}
	return os.WriteFile(filepath.Join(r.out, "checksums.txt"), []byte(b.String()), 0o644)
}

func sha256Of(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return h.Sum(nil), err
}
