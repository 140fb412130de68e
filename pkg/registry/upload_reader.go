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
	"math"
	"slices"
	"sync"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/pkg/layout"
)

// content is a blob as it is pushed.
type content struct {
	desc ocispec.Descriptor
	open layout.Opener
	// digestLast says that nobody knows the digest: desc has none until all was read.
	digestLast bool
}

// newCheckpoints makes the checkpoints of a session. Where nobody knows the digest
// there are none, so that who goes on reads all again.
func (c *content) newCheckpoints() *hashCheckpoints {
	if c.digestLast {
		return &hashCheckpoints{every: math.MaxInt64}
	}
	return newCheckpoints(c.desc.Size)
}

// hashCheckpoints are states of the hash of what an upload session has been sent,
// so that a request that goes on in the middle need not read from the beginning.
type hashCheckpoints struct {
	every int64 // bytes between two of them

	added func([]savedHash) // told of what another run needs; nil for nobody

	mu   sync.Mutex
	list []hashCheckpoint
	high int64 // how far any request got
}

type hashCheckpoint struct {
	off   int64
	state []byte
}

// newCheckpoints spaces them so that there are at most a thousand, of some 110
// bytes each, and none for small blobs.
func newCheckpoints(size int64) *hashCheckpoints {
	return &hashCheckpoints{every: max(4<<20, size/1000)}
}

// add is told that the bytes up to off are going out, and remembers h's state
// there if it is time to.
func (c *hashCheckpoints) add(off int64, h hash.Hash) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.high = max(c.high, off)
	last := int64(0)
	if n := len(c.list); n > 0 {
		last = c.list[n-1].off
	}
	if off-last < c.every {
		return
	}
	state, err := h.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		return
	}
	c.list = append(c.list, hashCheckpoint{off, state})
	if c.added != nil {
		c.added(c.few())
	}
}

// few returns the last checkpoints, and of those before fewer and fewer: a registry
// may have lost what it was sent last, and most of a blob rarely.
func (c *hashCheckpoints) few() []savedHash {
	var few []savedHash
	for back := 1; back <= len(c.list) && len(few) < maxSaved; back = max(back+1, 2*back-1) {
		m := c.list[len(c.list)-back]
		few = append(few, savedHash{m.off, m.state})
	}
	slices.Reverse(few)
	return few
}

// restore takes the checkpoints of an earlier run.
func (c *hashCheckpoints) restore(saved []savedHash) {
	for _, h := range saved {
		c.list = append(c.list, hashCheckpoint{h.Offset, h.State})
	}
}

// reached returns how much can have arrived.
func (c *hashCheckpoints) reached() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.high
}

// before returns the last known state at or before off.
func (c *hashCheckpoints) before(off int64) (int64, hash.Hash) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.list) - 1; i >= 0; i-- {
		h := sha256.New()
		if m := c.list[i]; m.off <= off && h.(encoding.BinaryUnmarshaler).UnmarshalBinary(m.state) == nil {
			return m.off, h
		}
	}
	return 0, sha256.New()
}

// blobReader is a blob's bytes in their order, from an offset on. It hashes what is
// read, also what comes before the offset, and gives the last bytes only when
// the whole had the right digest and size. Chunks of one upload are cut from one
// reader: a member that has to be decompressed is not begun again for each.
//
// One goroutine at a time reads; abort may be called by any.
type blobReader struct {
	content     *content
	checkpoints *hashCheckpoints
	ctx         context.Context //nolint:containedctx // a reader is one piece of work
	abort       context.CancelFunc

	src  io.ReadCloser // nil before seek, and after close
	hash hash.Hash
	pos  int64
}

func newBlobReader(ctx context.Context, c *content, checkpoints *hashCheckpoints) *blobReader {
	r := &blobReader{content: c, checkpoints: checkpoints}
	r.ctx, r.abort = context.WithCancel(ctx)
	return r
}

// seek opens the source at the last checkpoint before off, and reads up to off. It is
// called once.
func (r *blobReader) seek(off int64) error {
	r.pos, r.hash = r.checkpoints.before(off)
	src, err := r.content.open(r.ctx, r.pos)
	if err != nil {
		return err
	}
	r.src = src
	buf := make([]byte, min(256<<10, off-r.pos))
	for r.pos < off {
		if _, err := r.take(buf[:min(int64(len(buf)), off-r.pos)]); err != nil {
			return err
		}
	}
	if r.pos == r.content.desc.Size {
		return r.verify()
	}
	return nil
}

// read reads some bytes, and with the last checks the whole.
func (r *blobReader) read(p []byte) (int, error) {
	n, err := r.take(p)
	if err == nil && r.pos == r.content.desc.Size {
		err = r.verify()
	}
	if err != nil {
		return 0, err
	}
	return n, nil
}

// take reads some bytes and hashes them: at least one, or there is an error.
func (r *blobReader) take(p []byte) (int, error) {
	var n int
	var err error
	for tries := 0; n == 0 && err == nil; tries++ {
		if n, err = r.src.Read(p); tries == 100 {
			err = io.ErrNoProgress
		}
	}
	if n == 0 {
		if err == io.EOF { //nolint:errorlint // a wrapped one is why the source gave up
			err = fmt.Errorf("got %d bytes, want %d: %w", r.pos, r.content.desc.Size, layout.ErrDigest)
		}
		return 0, err
	}
	r.hash.Write(p[:n])
	r.pos += int64(n)
	if err != nil && err != io.EOF { //nolint:errorlint // as above
		return 0, err
	}
	r.checkpoints.add(r.pos, r.hash)
	return n, nil
}

// verify checks that the source ends here, and what it was. What the source
// itself says of its content counts first.
func (r *blobReader) verify() error {
	desc := r.content.desc
	var one [1]byte
	n, err := io.ReadFull(r.src, one[:])
	if n > 0 {
		return fmt.Errorf("got more than %d bytes: %w", desc.Size, layout.ErrDigest)
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	got := "sha256:" + hex.EncodeToString(r.hash.Sum(nil))
	if r.content.digestLast && desc.Digest == "" {
		desc.Digest = digest.Digest(got)
		r.content.desc.Digest = desc.Digest
	}
	if got != desc.Digest.String() {
		return fmt.Errorf("got %s, want %s: %w", got, desc.Digest, layout.ErrDigest)
	}
	return nil
}

// close ends the source.
func (r *blobReader) close() error {
	r.abort()
	if r.src == nil {
		return nil
	}
	src := r.src
	r.src = nil
	return src.Close()
}
