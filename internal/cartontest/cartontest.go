// Package cartontest gives tests a carton that lives in memory, and that fails
// where it is told to. It keeps every rule of carton.Source: what its readers
// end with io.EOF had the hash that MANIFEST lists.
package cartontest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

// Info is a carton.toml that every reader accepts, for a model that no runner
// needs to load.
const Info = `spec_version = 1
model_name = "test"
short_description = "A model for tests"
license = "Apache-2.0"

[runner]
runner_name = "torchscript"
required_framework_version = "*"
runner_compat_version = 1
`

// Source is a carton.Source in memory. It counts what is asked of it.
type Source struct {
	manifest *carton.Manifest
	links    *carton.Links
	members  []carton.Member // sorted
	content  map[string]Content
	linked   map[string]bool
	open     OpenHook
	ranges   RangeHook
	err      error

	mu     sync.Mutex
	opens  map[string]int
	order  []string
	now    int
	most   int
	closed bool
}

// Content gives a member's bytes. [Bytes] and [Zeros] make one.
type Content interface {
	Size() int64
	Hash() string // lower-case hex sha256
	Open() io.Reader
}

// OpenHook stands between a source and who opens its members. It is called with
// the member's path, how often that was opened before, and the reader that the
// source would give; what it returns is given instead. What it changes is
// checked against MANIFEST like any content.
type OpenHook func(path string, before int, r io.Reader) (io.Reader, error)

// RangeHook stands between a source and who opens ranges of its members. What it
// returns is given instead of r; nothing checks it.
type RangeHook func(ctx context.Context, path string, off, n int64, r io.Reader) (io.Reader, error)

// Option changes a source that is being made.
type Option func(*Source)

// WithContent adds a member whose bytes are not held in memory.
func WithContent(path string, c Content) Option {
	return func(s *Source) { s.content[path] = c }
}

// WithLinks gives the source a LINKS, and leaves out the members whose hash it
// lists: their size is -1, their place carton.PlaceLinked, and opening one is
// carton.ErrLink.
func WithLinks(l *carton.Links) Option {
	return func(s *Source) { s.links = l }
}

// WithBundle puts members into one bundle with the number n.
func WithBundle(n int, paths ...string) Option {
	return change(func(m *carton.Member) { m.Bundle, m.Place = n, carton.PlaceBundled }, paths)
}

// WithPlace says where members are.
func WithPlace(p carton.Place, paths ...string) Option {
	return change(func(m *carton.Member) { m.Place = p }, paths)
}

// WithUnknownSize makes Members return the size -1 for them.
func WithUnknownSize(paths ...string) Option {
	return change(func(m *carton.Member) { m.Size = -1 }, paths)
}

// WithSize makes Members return a size that may be a lie.
func WithSize(path string, size int64) Option {
	return change(func(m *carton.Member) { m.Size = size }, []string{path})
}

// WithOpen puts a hook in front of Open.
func WithOpen(h OpenHook) Option {
	return func(s *Source) { s.open = h }
}

// WithRanges makes every member's ranges cheap, and puts a hook, which may be nil,
// in front of OpenRange.
func WithRanges(h RangeHook) Option {
	return func(s *Source) {
		s.ranges = h
		for i := range s.members {
			s.members[i].Ranged = true
		}
	}
}

// WithMembersError makes Members fail.
func WithMembersError(err error) Option {
	return func(s *Source) { s.err = err }
}

// New makes a carton of files and symlinks. Both maps are by path; a symlink's
// value is its relative target. A carton.toml is added where there is none.
// Content that is no carton at all is a mistake in the test, and panics.
func New(files map[string][]byte, symlinks map[string]string, opts ...Option) *Source {
	src := &Source{
		content: map[string]Content{carton.InfoName: Bytes(Info)},
		linked:  map[string]bool{},
		opens:   map[string]int{},
	}
	for p, b := range files {
		src.content[p] = Bytes(b)
	}
	// Every option runs twice: before the members are listed, so that it can add
	// content, and after, so that it can change them.
	for _, o := range opts {
		o(src)
	}
	var entries []carton.Entry
	for p, c := range src.content {
		src.members = append(src.members, carton.Member{Path: p, Hash: c.Hash(), Size: c.Size()})
	}
	for p, target := range symlinks {
		c := src.content[final(p, symlinks)]
		if c == nil {
			panic(fmt.Sprintf("cartontest: the symlink %s ends at no member", p))
		}
		src.content[p] = c
		src.members = append(src.members, carton.Member{Path: p, Target: target, Hash: c.Hash(), Size: c.Size()})
	}
	slices.SortFunc(src.members, func(a, b carton.Member) int { return strings.Compare(a.Path, b.Path) })
	for i := range src.members {
		m := &src.members[i]
		entries = append(entries, carton.Entry{Path: m.Path, Hash: m.Hash})
		if src.links != nil && src.links.URLs[m.Hash] != nil {
			m.Size, m.Place = -1, carton.PlaceLinked
			src.linked[m.Path] = true
		}
	}
	src.manifest = must(carton.NewManifest(entries))
	for _, o := range opts {
		o(src)
	}
	return src
}

// Manifest returns MANIFEST.
func (s *Source) Manifest() *carton.Manifest { return s.manifest }

// Links returns LINKS.
func (s *Source) Links() *carton.Links { return s.links }

// Members returns the members, with what the options changed about them.
func (s *Source) Members(ctx context.Context) ([]carton.Member, error) {
	if s.err != nil {
		return nil, s.err
	}
	return slices.Clone(s.members), ctx.Err()
}

// Open opens a member's content, verified.
func (s *Source) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	c, want, err := s.find(path)
	if err != nil {
		return nil, err
	}
	before := s.opened(path)
	r := c.Open()
	if s.open != nil {
		if r, err = s.open(path, before, r); err != nil {
			s.done()
			return nil, err
		}
	}
	return &reader{ctx: ctx, r: r, path: path, want: want, hash: sha256.New(), done: sync.OnceFunc(s.done)}, nil
}

// OpenRange opens a range of a member's content, past the hook of Open.
func (s *Source) OpenRange(ctx context.Context, path string, off, n int64) (io.ReadCloser, error) {
	c, _, err := s.find(path)
	if err != nil {
		return nil, err
	}
	s.opened(path)
	defer s.done()
	part, err := carton.NewRange(path, c.Size(), off, n, func(off, n int64) (io.ReadCloser, error) {
		r := c.Open()
		if _, err := io.CopyN(io.Discard, r, off); err != nil {
			return nil, err
		}
		return io.NopCloser(io.LimitReader(r, n)), nil
	})
	if err != nil {
		return nil, err
	}
	r := io.Reader(part)
	if s.ranges != nil {
		if r, err = s.ranges(ctx, path, off, n, r); err != nil {
			return nil, err
		}
	}
	return io.NopCloser(r), nil
}

// Sizes implements [carton.Source]: what has a size has it.
func (*Source) Sizes(context.Context, []carton.Member) error { return nil }

// CheckFraming finds nothing wrong.
func (s *Source) CheckFraming(context.Context, string) error { return nil }

// CRC knows none.
func (s *Source) CRC(string) (uint32, bool) { return 0, false }

// Findings returns none.
func (s *Source) Findings() []carton.Finding { return nil }

// Close is remembered; nothing is released.
func (s *Source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// Opens returns how often a member was opened.
func (s *Source) Opens(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opens[path]
}

// Opened returns the paths that were opened, in that order.
func (s *Source) Opened() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.order)
}

// MostOpen returns the most readers that were open at once.
func (s *Source) MostOpen() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

// Unclosed returns how many readers are open now.
func (s *Source) Unclosed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// Closed reports whether the source was closed.
func (s *Source) Closed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func (s *Source) find(path string) (Content, string, error) {
	if path == carton.ManifestName {
		return Bytes(s.manifest.Bytes()), s.manifest.ModelHash(), nil
	}
	e, ok := s.manifest.Lookup(path)
	c := s.content[path]
	switch {
	case !ok || c == nil:
		return nil, "", &carton.Error{Path: path, Kind: fs.ErrNotExist, Msg: "no such member"}
	case s.linked[path]:
		return nil, "", &carton.Error{Path: path, Kind: carton.ErrLink, Msg: "is linked"}
	}
	return c, e.Hash, nil
}

func (s *Source) opened(path string) (before int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order = append(s.order, path)
	s.now++
	s.most = max(s.most, s.now)
	s.opens[path]++
	return s.opens[path] - 1
}

func (s *Source) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now--
}

// change changes members by path. Before there are any it does nothing.
func change(f func(*carton.Member), paths []string) Option {
	return func(src *Source) {
		for i := range src.members {
			if slices.Contains(paths, src.members[i].Path) {
				f(&src.members[i])
			}
		}
	}
}

// final follows symlinks that lead to symlinks.
func final(p string, symlinks map[string]string) string {
	for range carton.MaxSymlinks {
		target, ok := symlinks[p]
		if !ok {
			return p
		}
		p = path.Join(path.Dir(p), target)
	}
	return ""
}

func must[T any](v T, err error) T {
	if err != nil {
		panic("cartontest: " + err.Error())
	}
	return v
}

// Bytes is content held in memory.
type Bytes []byte

// Size returns the number of bytes.
func (b Bytes) Size() int64 { return int64(len(b)) }

// Open opens them.
func (b Bytes) Open() io.Reader { return bytes.NewReader(b) }

// Hash returns their sha256.
func (b Bytes) Hash() string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
