package layout

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"iter"
	"math"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/opencontainers/go-digest"
)

const (
	blockSize = 512
	// tarEnd is the length of the end of a tar, in bytes: two zero blocks. More
	// padding, which GNU tar and Python write, makes some readers of ModelPack
	// artifacts compute another digest.
	tarEnd = 2 * blockSize
)

// tarTime is every entry's modification time: the first that a zip can hold
// too.
var tarTime = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// TarEntry is a file or symlink of a tar layer.
type TarEntry struct {
	// Path is the entry's name: relative, clean, slash-separated UTF-8.
	Path string
	// Size is the content's length in bytes; 0 for a symlink.
	Size int64
	// Target is a symlink's target; "" for a regular file.
	Target string
}

// TarPlan is a tar layer before any of its content was read. Where everything
// lies follows from paths, sizes and targets alone, so that its bytes can be
// streamed from any offset, as often as a transfer needs.
//
// The bytes: every entry's folders come as entries of their own, once; entries
// are sorted bytewise by name, a folder's ending in a slash. Files have mode
// 0644, folders 0755, symlinks 0777; uid and gid are 0, user and group names
// empty, the modification time is 1980-01-01T00:00:00Z. Headers are ustar, with
// a PAX header in front only where a path, a target or a size does not fit, and
// with nothing but that in it. Two zero blocks are the end.
//
// https://pubs.opengroup.org/onlinepubs/9799919799/utilities/pax.html
type TarPlan struct {
	items []tarItem // bytewise by path
	size  int64
}

// tarItem is an entry with its place in the tar.
type tarItem struct {
	TarEntry
	folder bool
	header int64 // where the header begins
	data   int64 // where the content begins
}

// MemberOpener opens a member's content from offset off to the end.
type MemberOpener func(ctx context.Context, path string, off int64) (io.ReadCloser, error)

// NewTarPlan lays out the tar of the entries, in whatever order they come. The
// error wraps ErrFormat where a path is not clean, occurs twice or is both a
// file and a folder, and where a size is negative or too large.
func NewTarPlan(entries []TarEntry) (*TarPlan, error) {
	items, err := tarItems(entries)
	if err != nil {
		return nil, err
	}
	p := &TarPlan{items: items}
	off := int64(0)
	for i := range p.items {
		it := &p.items[i]
		header, err := it.headerBytes()
		if err != nil {
			return nil, err
		}
		it.header = off
		it.data = off + int64(len(header))
		if it.Size > math.MaxInt64/2-it.data {
			return nil, errorf(ErrFormat, it.Path, "is %d bytes, which is too large for a tar", it.Size)
		}
		off = it.data + padded(it.Size)
	}
	p.size = off + tarEnd
	return p, nil
}

// Size returns the tar's length in bytes.
func (p *TarPlan) Size() int64 { return p.size }

// Entries gives the files and symlinks in the order of the tar.
func (p *TarPlan) Entries() iter.Seq[TarEntry] {
	return func(yield func(TarEntry) bool) {
		for i := range p.items {
			if it := &p.items[i]; !it.folder && !yield(it.TarEntry) {
				return
			}
		}
	}
}

// Extent returns where the content of an entry lies: offset and length in
// bytes. A symlink has length 0. ok is false where there is no such entry;
// folders are none.
func (p *TarPlan) Extent(path string) (off, n int64, ok bool) {
	i, ok := slices.BinarySearchFunc(p.items, path,
		func(it tarItem, path string) int { return strings.Compare(it.Path, path) })
	if !ok || p.items[i].folder {
		return 0, 0, false
	}
	return p.items[i].data, p.items[i].Size, true
}

// Digest reads the whole tar and returns its digest.
func (p *TarPlan) Digest(ctx context.Context, open MemberOpener) (digest.Digest, error) {
	r, err := p.Open(ctx, 0, open)
	if err != nil {
		return "", err
	}
	defer r.Close()
	return digest.SHA256.FromReader(r)
}

// tarItems checks the entries, adds their folders, and sorts.
func tarItems(entries []TarEntry) ([]tarItem, error) {
	items := make([]tarItem, 0, len(entries)+1)
	files := make(map[string]bool, len(entries))
	for _, e := range entries {
		if err := checkTarEntry(e); err != nil {
			return nil, err
		}
		if files[e.Path] {
			return nil, errorf(ErrFormat, e.Path, "occurs twice in a tar")
		}
		files[e.Path] = true
		items = append(items, tarItem{TarEntry: e})
	}
	folders := map[string]bool{}
	for _, e := range entries {
		for dir := path.Dir(e.Path); dir != "." && !folders[dir]; dir = path.Dir(dir) {
			if files[dir] {
				return nil, errorf(ErrFormat, dir, "is a file of a tar and also a folder")
			}
			folders[dir] = true
			items = append(items, tarItem{TarEntry: TarEntry{Path: dir + "/"}, folder: true})
		}
	}
	slices.SortFunc(items, func(a, b tarItem) int { return strings.Compare(a.Path, b.Path) })
	return items, nil
}

func checkTarEntry(e TarEntry) error {
	p := e.Path
	switch {
	case p == "" || p == "." || p[0] == '/' || path.Clean(p) != p || p == ".." || strings.HasPrefix(p, "../"):
		return errorf(ErrFormat, p, "is not the relative, clean path that a tar needs")
	case strings.ContainsRune(p, 0) || !utf8.ValidString(p):
		return errorf(ErrFormat, p, "holds a NUL or is not UTF-8, and a tar can't name it so")
	case strings.ContainsRune(e.Target, 0) || !utf8.ValidString(e.Target):
		return errorf(ErrFormat, p, "its target holds a NUL or is not UTF-8, and a tar can't name it so")
	case e.Size < 0:
		return errorf(ErrFormat, p, "its size is %d bytes; a size is 0 or more", e.Size)
	case e.Target != "" && e.Size != 0:
		return errorf(ErrFormat, p, "is a symlink of %d bytes; a symlink has none", e.Size)
	}
	return nil
}

// headerBytes returns the header's blocks, with the PAX header in front where
// there is one. archive/tar writes ustar where that holds everything, then PAX
// with sorted records; no clock, host or user reaches them.
func (it *tarItem) headerBytes() ([]byte, error) {
	h := tar.Header{Typeflag: tar.TypeReg, Name: it.Path, Size: it.Size, Mode: 0o644, ModTime: tarTime}
	switch {
	case it.folder:
		h.Typeflag, h.Mode = tar.TypeDir, 0o755
	case it.Target != "":
		h.Typeflag, h.Mode, h.Linkname = tar.TypeSymlink, 0o777, it.Target
	}
	var b bytes.Buffer
	if err := tar.NewWriter(&b).WriteHeader(&h); err != nil {
		return nil, &Error{Object: it.Path, Kind: ErrFormat, Msg: "does not fit a tar header", Err: err}
	}
	return b.Bytes(), nil
}

// end returns where the next header begins.
func (it *tarItem) end() int64 { return it.data + padded(it.Size) }

// padded rounds up to whole blocks.
func padded(n int64) int64 { return (n + blockSize - 1) / blockSize * blockSize }
