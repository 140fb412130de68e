package carton

import (
	"context"
	"io"
	"slices"
	"strings"
)

// FileSource is what [NewFileSource] makes a [Source] of.
type FileSource struct {
	Manifest *Manifest
	Links    *Links // nil for none
	// Members are those that MANIFEST lists. Their order and their symlinks' Size,
	// Place and Ranged are filled in.
	Members []Member
	// Open opens the content of a regular member, which it does not verify. A
	// reader that is an io.ReaderAt is read from where a range begins.
	Open func(m Member) (io.ReadCloser, error)
	// OpenRange, where it is set, takes the place of Open, for content that is far
	// away: it opens n bytes from off, all of them within the member's Size.
	OpenRange func(ctx context.Context, m Member, off, n int64) (io.ReadCloser, error)
	// Close, which may be nil, is the source's.
	Close func() error
}

// NewFileSource makes a Source of members that can be opened one by one, of files
// say. It verifies them, cuts their ranges, and checks and follows symlinks.
func NewFileSource(f FileSource) (Source, error) {
	slices.SortFunc(f.Members, func(a, b Member) int { return strings.Compare(a.Path, b.Path) })
	if err := ResolveSymlinks(f.Members); err != nil {
		return nil, err
	}
	return &fileSource{f}, nil
}

type fileSource struct{ f FileSource }

// Manifest implements [Source].
func (s *fileSource) Manifest() *Manifest { return s.f.Manifest }

// Links implements [Source].
func (s *fileSource) Links() *Links { return s.f.Links }

// Members implements [Source].
func (s *fileSource) Members(context.Context) ([]Member, error) {
	return slices.Clone(s.f.Members), nil
}

// Open implements [Source].
func (s *fileSource) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	if path == ManifestName {
		return io.NopCloser(s.f.Manifest.NewReader()), nil
	}
	m, err := s.member(ctx, path)
	if err != nil {
		return nil, err
	}
	var r io.ReadCloser
	if s.f.OpenRange != nil {
		r, err = s.f.OpenRange(ctx, m, 0, m.Size)
	} else {
		r, err = s.f.Open(m)
	}
	if err != nil {
		return nil, err
	}
	return NewVerifier(r, path, m.Hash, m.Size), nil
}

// OpenRange implements [Source].
func (s *fileSource) OpenRange(ctx context.Context, path string, off, n int64) (io.ReadCloser, error) {
	if path == ManifestName {
		return rangeOf(s.f.Manifest.NewReader(), nil, path, off, n)
	}
	m, err := s.member(ctx, path)
	if err != nil {
		return nil, err
	}
	if s.f.OpenRange != nil {
		return NewRange(path, m.Size, off, n,
			func(off, n int64) (io.ReadCloser, error) { return s.f.OpenRange(ctx, m, off, n) })
	}
	r, err := s.f.Open(m)
	if err != nil {
		return nil, err
	}
	if at, ok := r.(io.ReaderAt); ok {
		return rangeOf(io.NewSectionReader(at, 0, m.Size), r, path, off, n)
	}
	return skipTo(r, path, m.Size, off, n)
}

// member returns the regular member where path ends, which is opened by its own
// name: the system follows no symlink.
func (s *fileSource) member(ctx context.Context, path string) (Member, error) {
	if err := ctx.Err(); err != nil {
		return Member{}, err
	}
	if _, ok := findMember(s.f.Members, path); !ok {
		return Member{}, errNoMember(path)
	}
	m, err := followSymlinks(s.f.Members, path)
	if err == nil && m.Place == PlaceLinked {
		err = errLinked(path)
	}
	return m, err
}

// Sizes implements [Source]: what has a size has it.
func (*fileSource) Sizes(context.Context, []Member) error { return nil }

// CheckFraming implements [Source]: a file holds its member and nothing else.
func (*fileSource) CheckFraming(context.Context, string) error { return nil }

// CRC implements [Source]: there is none.
func (*fileSource) CRC(string) (uint32, bool) { return 0, false }

// Findings implements [Source]: files are as the format has them.
func (*fileSource) Findings() []Finding { return nil }

// Close implements [Source].
func (s *fileSource) Close() error {
	if s.f.Close == nil {
		return nil
	}
	return s.f.Close()
}
