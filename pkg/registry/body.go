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
	"io/fs"
	"sync"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/pkg/layout"
)

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

// content is a blob as Push gets it.
type content struct {
	desc ocispec.Descriptor
	open layout.Opener
	sent func(off int64)
}

// body is a blob's bytes from an offset to the end, on their way into one
// request. It hashes what passes. The last bytes pass only when the whole had
// the right digest and size, so that a wrong blob is never complete.
type body struct {
	content *content
	trail   *trail
	watch   *watchdog // nil: nobody watches
	cancel  context.CancelFunc
	ctx     context.Context //nolint:containedctx // a body is one request's work

	mu   sync.Mutex
	src  io.ReadCloser
	hash hash.Hash
	pos  int64 // of the next byte from src
	off  int64 // of the first byte to deliver
	err  error // what Read returns from now on
	own  error // what went wrong with the source, not with the network
	done bool  // everything was delivered
}

func newBody(ctx context.Context, c *content, t *trail, off int64, w *watchdog) *body {
	b := &body{content: c, trail: t, watch: w, off: off}
	b.ctx, b.cancel = context.WithCancel(ctx)
	return b
}

// Read opens the source when it is first called.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watch.pause()
	defer func() { b.watch.resume(b.done) }()
	if b.err == nil && b.src == nil {
		b.start()
	}
	if b.err != nil {
		return 0, b.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	if left := b.content.desc.Size - b.pos; int64(len(p)) > left {
		p = p[:left]
	}
	n, err := b.take(p)
	if err != nil {
		b.fail(err)
		return 0, b.err
	}
	if b.content.sent != nil {
		b.content.sent(b.pos)
	}
	return n, nil
}

// start opens the source at the last mark, and reads up to the offset.
func (b *body) start() {
	b.pos, b.hash = b.trail.before(b.off)
	src, err := b.content.open(b.ctx, b.pos)
	if err != nil {
		b.fail(err)
		return
	}
	b.src = src
	buf := make([]byte, 64<<10)
	for b.pos < b.off && b.err == nil {
		want := buf[:min(int64(len(buf)), b.off-b.pos)]
		if _, err := b.take(want); err != nil {
			b.fail(err)
		}
	}
	if b.err == nil && b.pos == b.content.desc.Size {
		if err := b.verify(); err != nil {
			b.fail(err)
			return
		}
		b.err, b.done = io.EOF, true
	}
}

// take reads some bytes and hashes them. With the blob's last it checks the whole.
func (b *body) take(p []byte) (int, error) {
	var n int
	var err error
	for tries := 0; n == 0 && err == nil; tries++ {
		if n, err = b.src.Read(p); tries == 100 {
			err = io.ErrNoProgress
		}
	}
	size := b.content.desc.Size
	if n == 0 {
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("got %d bytes, want %d: %w", b.pos, size, layout.ErrDigest)
		}
		return 0, err
	}
	b.hash.Write(p[:n])
	b.pos += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	b.trail.note(b.pos, b.hash)
	if b.pos < size {
		return n, nil
	}
	if b.off < size { // start asks for itself where nothing is to be delivered
		if err := b.verify(); err != nil {
			return 0, err
		}
		b.err, b.done = io.EOF, true
	}
	return n, nil
}

// verify checks that the source ends here, and what it was. What the source
// itself says of its content counts first.
func (b *body) verify() error {
	desc := b.content.desc
	var one [1]byte
	n, err := io.ReadFull(b.src, one[:])
	if n > 0 {
		return fmt.Errorf("got more than %d bytes: %w", desc.Size, layout.ErrDigest)
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	if got := "sha256:" + hex.EncodeToString(b.hash.Sum(nil)); got != desc.Digest.String() {
		return fmt.Errorf("got %s, want %s: %w", got, desc.Digest, layout.ErrDigest)
	}
	return nil
}

// fail notes what the source did; a source that was told to stop did nothing.
func (b *body) fail(err error) {
	b.err = err
	if b.ctx.Err() == nil {
		b.own = err
	}
}

// Close ends the source.
func (b *body) Close() error {
	b.cancel() // a Read that waits for its source comes back
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = fs.ErrClosed
	}
	if b.src == nil {
		return nil
	}
	src := b.src
	b.src = nil
	return src.Close()
}

// outcome reports whether every byte went out, and what went wrong with the
// source.
func (b *body) outcome() (done bool, own error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.done, b.own
}
