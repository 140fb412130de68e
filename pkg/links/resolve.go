package links

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// sizesAtOnce is how many hosts are asked for sizes at the same time.
const sizesAtOnce = 8

// Resolve gives the carton that src is once its links are followed: a carton.Source
// like any other, whose linked members open through f. Where src has no LINKS it
// is returned as it is. Closing what is returned closes src.
//
// A member's URLs are asked in the order of LINKS. What one of them can't give,
// from the start or in the middle, the next one is asked for. Open verifies the
// content against MANIFEST like that of every other member. A URL whose content
// was wrong is not asked again; the error, carton.ErrChecksum, reports Temporary() true
// where another URL is left. A member that no URL could give is carton.ErrLink, with
// the reason of each.
//
// Sizes asks for the sizes of linked members, at most eight at once; where no
// host says one it stays -1. What was answered once is not asked for again, and
// content that is longer than its host has said is not read further.
func Resolve(src carton.Source, f Fetcher) carton.Source {
	links := src.Links()
	if links == nil || len(links.URLs) == 0 {
		return src
	}
	return &resolved{
		Source: src,
		fetch:  f,
		links:  links,
		known:  map[string]*candidates{},
		sizes:  map[string]int64{},
		open:   map[*reader]struct{}{},
	}
}

// resolved is a source whose links are followed.
type resolved struct {
	carton.Source
	fetch Fetcher
	links *carton.Links

	mu     sync.Mutex
	known  map[string]*candidates // by hash
	sizes  map[string]int64       // by hash; -1 where nobody said one
	open   map[*reader]struct{}
	closed bool
}

// Open implements [Source].
func (s *resolved) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	r, err := s.Source.Open(ctx, path)
	if !errors.Is(err, carton.ErrLink) {
		return r, err
	}
	return s.follow(ctx, path, 0, -1, true, err)
}

// OpenRange implements [Source].
func (s *resolved) OpenRange(ctx context.Context, path string, off, n int64) (io.ReadCloser, error) {
	r, err := s.Source.OpenRange(ctx, path, off, n)
	if !errors.Is(err, carton.ErrLink) {
		return r, err
	}
	if off < 0 {
		return nil, errorf(carton.ErrFormat, path, "a range can't begin at %d", off)
	}
	return s.follow(ctx, path, off, n, false, err)
}

// Close implements [Source].
func (s *resolved) Close() error {
	s.mu.Lock()
	s.closed = true
	for r := range s.open {
		r.cancel()
	}
	s.mu.Unlock()
	return s.Source.Close()
}

// Members implements [Source].
func (s *resolved) Members(ctx context.Context) ([]carton.Member, error) {
	members, err := s.Source.Members(ctx)
	if err != nil {
		return nil, err
	}
	s.setSizes(members)
	return members, nil
}

// Sizes implements [Source].
func (s *resolved) Sizes(ctx context.Context, members []carton.Member) error {
	if err := s.askSizes(ctx, members); err != nil {
		return err
	}
	s.setSizes(members)
	return nil
}

// setSizes gives linked members the sizes that are known.
func (s *resolved) setSizes(members []carton.Member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range members {
		m := &members[i]
		if size, ok := s.sizes[m.Hash]; ok && m.Place == carton.PlaceLinked && m.Size < 0 {
			m.Size = size
		}
		// Most hosts honour ranges; one that does not says so when it is asked.
		m.Ranged = m.Ranged || m.Place == carton.PlaceLinked && m.Size >= 0
	}
}

// askSizes learns the sizes of linked members, each content's once. A host that
// does not answer is no error: who reads the member is told.
func (s *resolved) askSizes(ctx context.Context, members []carton.Member) error {
	var hashes []string
	s.mu.Lock()
	for _, m := range members {
		if _, known := s.sizes[m.Hash]; m.Place == carton.PlaceLinked && m.Size < 0 && !known {
			hashes = append(hashes, m.Hash)
		}
	}
	s.mu.Unlock()
	slices.Sort(hashes)
	hashes = slices.Compact(hashes)
	sizes := make([]int64, len(hashes))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(sizesAtOnce, len(hashes)) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(hashes)); i = next.Add(1) - 1 {
				sizes[i] = s.askSize(ctx, hashes[i])
			}
		})
	}
	workers.Wait()
	if err := ctx.Err(); err != nil {
		return err // what was answered may be the interruption
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, hash := range hashes {
		s.sizes[hash] = sizes[i]
	}
	return nil
}

// askSize returns the size that the first host states which states one, else -1.
func (s *resolved) askSize(ctx context.Context, hash string) int64 {
	for _, u := range s.urls(hash) {
		if ctx.Err() != nil {
			break
		}
		size, err := s.fetch.Size(ctx, Link{Hash: hash, URL: u})
		switch {
		case err != nil && ctx.Err() == nil:
			s.failed(hash, u) // nor will it be the first that is asked for the content
		case err == nil && size >= 0:
			return size
		}
	}
	return -1
}

// follow opens a linked member. linked is the error that src gave for it.
func (s *resolved) follow(
	ctx context.Context, path string, off, n int64, verified bool, linked error,
) (io.ReadCloser, error) {
	e, ok := s.Manifest().Lookup(path)
	if !ok || len(s.links.URLs[e.Hash]) == 0 {
		return nil, linked
	}
	r := &reader{s: s, path: path, hash: e.Hash, size: s.size(e.Hash), off: off, n: n, tried: map[string]bool{}}
	if verified {
		r.start()
	}
	r.ctx, r.cancel = context.WithCancel(ctx)
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.open[r] = struct{}{}
	}
	s.mu.Unlock()
	if closed {
		r.cancel()
		return nil, fmt.Errorf("open %s: %w", errtext.Quote(path), fs.ErrClosed)
	}
	if err := r.next(); err != nil {
		_ = r.Close()
		return nil, err
	}
	return r, nil
}

// size returns the size that a host has said, -1 for none.
func (s *resolved) size(hash string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if size, ok := s.sizes[hash]; ok {
		return size
	}
	return -1
}
