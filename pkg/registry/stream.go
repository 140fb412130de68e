package registry

import (
	"context"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/pkg/layout"
)

// content is a blob as it is pushed.
type content struct {
	desc ocispec.Descriptor
	open layout.Opener
	// learn says that nobody knows the digest: desc has none until a stream was
	// read to its end.
	learn bool
}

// trail is what an upload session has been sent: the state of its hash at
// certain offsets, so that a request that goes on in the middle need not read
// from the beginning.
type trail struct {
	every int64 // bytes between two marks

	mu    sync.Mutex
	marks []mark
	high  int64 // how far any request got
}

type mark struct {
	off   int64
	state []byte
}

// newTrail spaces marks so that there are at most a thousand, of some 110 bytes
// each, and none for small blobs.
func newTrail(size int64) *trail {
	return &trail{every: max(4<<20, size/1000)}
}

// note is told that the bytes up to off are going out, and remembers h's state
// there if it is time to.
func (t *trail) note(off int64, h hash.Hash) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.high = max(t.high, off)
	last := int64(0)
	if n := len(t.marks); n > 0 {
		last = t.marks[n-1].off
	}
	if off-last < t.every {
		return
	}
	if state, err := h.(encoding.BinaryMarshaler).MarshalBinary(); err == nil {
		t.marks = append(t.marks, mark{off, state})
	}
}

// reached returns how much can have arrived.
func (t *trail) reached() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.high
}

// before returns the last known state at or before off.
func (t *trail) before(off int64) (int64, hash.Hash) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := len(t.marks) - 1; i >= 0; i-- {
		h := sha256.New()
		if m := t.marks[i]; m.off <= off && h.(encoding.BinaryUnmarshaler).UnmarshalBinary(m.state) == nil {
			return m.off, h
		}
	}
	return 0, sha256.New()
}

// stream is a blob's bytes in their order, from an offset on. It hashes what is
// read, also what comes before the offset, and gives the last bytes only when
// the whole had the right digest and size. Chunks of one upload are cut from one
// stream: a member that has to be decompressed is not begun again for each.
//
// One goroutine at a time reads; abort may be called by any.
type stream struct {
	content *content
	trail   *trail
	ctx     context.Context //nolint:containedctx // a stream is one piece of work
	abort   context.CancelFunc

	src  io.ReadCloser // nil before seek, and after close
	hash hash.Hash
	pos  int64
}

func newStream(ctx context.Context, c *content, t *trail) *stream {
	s := &stream{content: c, trail: t}
	s.ctx, s.abort = context.WithCancel(ctx)
	return s
}

// seek opens the source at the last mark before off, and reads up to off. It is
// called once.
func (s *stream) seek(off int64) error {
	s.pos, s.hash = s.trail.before(off)
	src, err := s.content.open(s.ctx, s.pos)
	if err != nil {
		return err
	}
	s.src = src
	buf := make([]byte, min(256<<10, off-s.pos))
	for s.pos < off {
		if _, err := s.take(buf[:min(int64(len(buf)), off-s.pos)]); err != nil {
			return err
		}
	}
	if s.pos == s.content.desc.Size {
		return s.verify()
	}
	return nil
}

// read reads some bytes, and with the last checks the whole.
func (s *stream) read(p []byte) (int, error) {
	n, err := s.take(p)
	if err == nil && s.pos == s.content.desc.Size {
		err = s.verify()
	}
	if err != nil {
		return 0, err
	}
	return n, nil
}

// take reads some bytes and hashes them: at least one, or there is an error.
func (s *stream) take(p []byte) (int, error) {
	var n int
	var err error
	for tries := 0; n == 0 && err == nil; tries++ {
		if n, err = s.src.Read(p); tries == 100 {
			err = io.ErrNoProgress
		}
	}
	if n == 0 {
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("got %d bytes, want %d: %w", s.pos, s.content.desc.Size, layout.ErrDigest)
		}
		return 0, err
	}
	s.hash.Write(p[:n])
	s.pos += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	s.trail.note(s.pos, s.hash)
	return n, nil
}

// verify checks that the source ends here, and what it was. What the source
// itself says of its content counts first.
func (s *stream) verify() error {
	desc := s.content.desc
	var one [1]byte
	n, err := io.ReadFull(s.src, one[:])
	if n > 0 {
		return fmt.Errorf("got more than %d bytes: %w", desc.Size, layout.ErrDigest)
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	got := "sha256:" + hex.EncodeToString(s.hash.Sum(nil))
	if s.content.learn && desc.Digest == "" {
		desc.Digest = digest.Digest(got)
		s.content.desc.Digest = desc.Digest
	}
	if got != desc.Digest.String() {
		return fmt.Errorf("got %s, want %s: %w", got, desc.Digest, layout.ErrDigest)
	}
	return nil
}

// close ends the source.
func (s *stream) close() error {
	s.abort()
	if s.src == nil {
		return nil
	}
	src := s.src
	s.src = nil
	return src.Close()
}
