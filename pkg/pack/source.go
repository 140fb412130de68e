package pack

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"

	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/internal/localfile"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// file is one member of the carton that is being made: a file of a folder, a
// symlink, or bytes that were generated.
type file struct {
	path     string // in the carton
	root     *os.Root
	name     string  // in root; "" for what was generated
	remote   *remote // of a listing, in root's place
	pieces   *pieces // what the content is made of, nil for a file's own
	off      int64   // where in it the content begins, of a part
	part     bool    // the content is size bytes of it
	text     []byte  // what was generated
	target   string  // of a symlink, relative and cleaned; "" for a file
	size     int64
	hash     string // lower-case hex sha256, once hashed
	md5      string // where it was asked for
	sum      bool   // MD5 is asked for
	nameHash string // the sha256 that it should have, "" where nothing says so
}

// content is what can be read of a file.
type content interface {
	io.Reader
	io.ReaderAt
	io.Closer
}

type text struct{ *bytes.Reader }

func (text) Close() error { return nil }

// open opens a file's content. It is not verified.
func (f *file) open() (content, error) {
	if f.remote != nil {
		return f.remote.open(), nil
	}
	if f.pieces != nil {
		return f.pieces.open()
	}
	if f.root == nil {
		return text{bytes.NewReader(f.text)}, nil
	}
	r, err := localfile.OpenIn(f.root, f.name)
	if errors.Is(err, localfile.ErrKind) {
		return nil, changed(f.path, "is not a regular file any more")
	}
	if err != nil {
		return nil, err
	}
	if f.part {
		return part{io.NewSectionReader(r, f.off, f.size), r}, nil
	}
	return r, nil
}

// part is a part of a file, which is closed with it.
type part struct {
	*io.SectionReader
	io.Closer
}

// generated reports whether the content was made here, and is no file's.
func (f *file) generated() bool { return f.root == nil && f.remote == nil }

// openRange opens n bytes of a file's content from off.
func (f *file) openRange(ctx context.Context, off, n int64) (io.ReadCloser, error) {
	if f.remote != nil {
		return f.remote.openRange(ctx, off, n)
	}
	r, err := f.open()
	if err != nil {
		return nil, err
	}
	return iox.ReadCloser{Reader: io.NewSectionReader(r, off, n), Closer: r}, nil
}

func changed(path, what string) error {
	return &carton.Error{Path: path, Kind: carton.ErrChecksum, Msg: what + ": it changed while it was packed"}
}

// newSource makes MANIFEST and a source of files that have been hashed. roots are
// closed with it.
func newSource(files []*file, roots []*os.Root) (carton.Source, error) {
	byPath := map[string]*file{}
	var members []carton.Member
	var entries []carton.Entry
	for _, f := range files {
		byPath[f.path] = f
		members = append(members, carton.Member{
			Path: f.path, Target: f.target, Hash: f.hash, Size: f.size, Place: carton.PlaceFile, Ranged: true,
		})
		entries = append(entries, carton.Entry{Path: f.path, Hash: f.hash})
	}
	manifest, err := carton.NewManifest(entries)
	if err != nil {
		return nil, err
	}
	var openRange func(context.Context, carton.Member, int64, int64) (io.ReadCloser, error)
	if slices.ContainsFunc(files, func(f *file) bool { return f.remote != nil }) {
		openRange = func(ctx context.Context, m carton.Member, off, n int64) (io.ReadCloser, error) {
			return byPath[m.Path].openRange(ctx, off, n)
		}
	}
	return carton.NewFileSource(carton.FileSource{
		Manifest: manifest, Members: members,
		OpenRange: openRange,
		Open:      func(m carton.Member) (io.ReadCloser, error) { return byPath[m.Path].open() },
		Close: func() error {
			var errs []error
			for _, r := range roots {
				errs = append(errs, r.Close())
			}
			return errors.Join(errs...)
		},
	})
}

// looseSource is a source of files whose hashes are none.
type looseSource struct{ carton.Source }

// Open opens a member, unverified.
func (s looseSource) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	return s.OpenRange(ctx, name, 0, -1)
}
