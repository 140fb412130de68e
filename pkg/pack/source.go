package pack

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/internal/localfile"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// file is one member of the carton that is being made: a file of a folder, a
// symlink, or bytes that were generated.
type file struct {
	path   string // in the carton
	root   *os.Root
	name   string // in root; "" for what was generated
	off    int64  // where in it the content begins, of a part
	part   bool   // the content is size bytes of it
	text   []byte // what was generated
	target string // of a symlink, relative and cleaned; "" for a file
	size   int64
	hash   string // lower-case hex sha256, once hashed
	md5    string // where it was asked for
	sum    bool   // MD5 is asked for
	claim  string // the sha256 that it should have, "" where nothing says so
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

func changed(path, what string) error {
	return &carton.Error{Path: path, Kind: carton.ErrChecksum, Msg: what + ": it changed while it was packed"}
}

// source is a carton.Source of files.
type source struct {
	manifest *carton.Manifest
	files    map[string]*file
	members  []carton.Member // sorted, symlinks resolved
	roots    []*os.Root
	loose    bool // hashes are none
}

// newSource makes MANIFEST of files that have been hashed. roots are closed with
// it.
func newSource(files []*file, roots []*os.Root) (*source, error) {
	s := &source{files: map[string]*file{}, roots: roots}
	for _, f := range files {
		s.files[f.path] = f
		s.members = append(s.members, carton.Member{
			Path: f.path, Target: f.target, Hash: f.hash, Size: f.size, Place: carton.PlaceFile, Ranged: true,
		})
	}
	slices.SortFunc(s.members, func(a, b carton.Member) int { return strings.Compare(a.Path, b.Path) })
	entries := make([]carton.Entry, len(s.members))
	for i, m := range s.members {
		entries[i] = carton.Entry{Path: m.Path, Hash: m.Hash}
	}
	var err error
	if s.manifest, err = carton.NewManifest(entries); err != nil {
		return nil, err
	}
	return s, carton.ResolveSymlinks(s.members)
}

// Manifest implements [carton.Source].
func (s *source) Manifest() *carton.Manifest { return s.manifest }

// Links implements [carton.Source]: every member is at hand.
func (s *source) Links() *carton.Links { return nil }

// Members implements [carton.Source].
func (s *source) Members(context.Context) ([]carton.Member, error) {
	return slices.Clone(s.members), nil
}

// Open implements [carton.Source].
func (s *source) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	if name == carton.ManifestName {
		return io.NopCloser(s.manifest.NewReader()), nil
	}
	f, err := s.find(ctx, name)
	if err != nil {
		return nil, err
	}
	r, err := f.open()
	if err != nil {
		return nil, err
	}
	if s.loose {
		return r, nil
	}
	return carton.NewVerifier(r, name, f.hash, f.size), nil
}

// OpenRange implements [carton.Source].
func (s *source) OpenRange(ctx context.Context, name string, off, n int64) (io.ReadCloser, error) {
	if name == carton.ManifestName {
		return carton.NewRange(name, s.manifest.Len(), off, n, func(off, n int64) (io.ReadCloser, error) {
			return io.NopCloser(io.NewSectionReader(s.manifest.NewReader(), off, n)), nil
		})
	}
	f, err := s.find(ctx, name)
	if err != nil {
		return nil, err
	}
	return carton.NewRange(name, f.size, off, n, func(off, n int64) (io.ReadCloser, error) {
		r, err := f.open()
		if err != nil {
			return nil, err
		}
		return iox.ReadCloser{Reader: io.NewSectionReader(r, off, n), Closer: r}, nil
	})
}

// find returns the regular file where a path ends.
func (s *source) find(ctx context.Context, name string) (*file, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, ok := s.files[name]
	for range carton.MaxSymlinks {
		if !ok || f.target == "" {
			break
		}
		f, ok = s.files[path.Join(path.Dir(f.path), f.target)]
	}
	if !ok {
		return nil, &carton.Error{Path: name, Kind: fs.ErrNotExist, Msg: "is not in the carton"}
	}
	return f, nil
}

// Sizes implements [carton.Source]: what has a size has it.
func (*source) Sizes(context.Context, []carton.Member) error { return nil }

// CheckFraming implements [carton.Source]: a file holds its member and nothing
// else.
func (s *source) CheckFraming(context.Context, string) error { return nil }

// CRC implements [carton.Source].
func (s *source) CRC(string) (uint32, bool) { return 0, false }

// Findings implements [carton.Source].
func (s *source) Findings() []carton.Finding { return nil }

// Close implements [carton.Source].
func (s *source) Close() error {
	var errs []error
	for _, r := range s.roots {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}
