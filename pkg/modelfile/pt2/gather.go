package pt2

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/iox"
)

const (
	// blockBytes is how much of a tensor is gathered at once, and windowBytes how
	// much of its storage is held for that.
	blockBytes  = 16 << 20
	windowBytes = 1 << 20
	// gapBytes is how much that is not needed is read rather than leapt over.
	gapBytes = 16 << 10
)

// Read returns the tensor's elements in C order, little-endian. r is the archive
// as it was opened. Only bytes of [Tensor.Span] and the entry's local header are
// read, in rising order where the tensor is contiguous. Memory is bounded
// whatever the tensor's size. A tensor that can't be read is ErrUnreadable, a
// local header that contradicts the directory ErrFormat. The bytes are not
// checked against a CRC: that would take the whole storage.
func (t *Tensor) Read(r io.ReaderAt) (io.Reader, error) {
	if t.why != "" {
		return nil, fmt.Errorf("tensor %s: %w: %s", quote(t.Name), ErrUnreadable, t.why)
	}
	off, n := t.Span()
	if t.Bytes()-n > MaxRepeated {
		return nil, fmt.Errorf("tensor %s: %w: repeats %d bytes of its storage to %d", quote(t.Name), ErrUnreadable, n, t.Bytes())
	}
	if t.Bytes() == 0 {
		return eof{}, nil
	}
	switch data, err := t.entry.Locate(r); {
	case err != nil:
		return nil, zipError(err)
	case data != predicted(t.entry):
		return nil, fmt.Errorf("%w: %s: data begin at %d, want %d, as far before the next entry as the directory says", ErrFormat, errtext.Quote(t.entry.Name), data, predicted(t.entry))
	}
	d := byName[t.DType]
	swap := int64(1)
	if t.BigEndian {
		swap = d.swap
	}
	if t.Contiguous() {
		in := &iox.Exactly{R: io.NewSectionReader(r, off, n), N: n}
		if swap == 1 {
			return in, nil
		}
		return &swapper{r: in, size: swap}, nil
	}
	return newGatherer(t, r, d.size, swap, blockBytes), nil
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// swapper reverses the bytes of each element.
type swapper struct {
	r    io.Reader
	size int64
	buf  []byte
	out  []byte // the rest of buf
}

func (s *swapper) Read(p []byte) (int, error) {
	if len(s.out) == 0 {
		if s.buf == nil {
			s.buf = make([]byte, 64<<10)
		}
		n, err := io.ReadFull(s.r, s.buf)
		if err != nil && (n == 0 || !errors.Is(err, io.ErrUnexpectedEOF) || int64(n)%s.size != 0) {
			return 0, err
		}
		s.out = s.buf[:n]
		reverse(s.out, s.size)
	}
	n := copy(p, s.out)
	s.out = s.out[n:]
	return n, nil
}

// reverse reverses each size bytes of b.
func reverse(b []byte, size int64) {
	if size == 1 {
		return
	}
	for i := int64(0); i+size <= int64(len(b)); i += size {
		slices.Reverse(b[i : i+size])
	}
}

// axis is a dimension while it is gathered, in elements.
type axis struct {
	n, stride int64 // in the storage
	out       int64 // stride in the block
}

// gatherer makes a tensor's bytes block by block. A block is a range of one
// dimension with all of those inside it.
type gatherer struct {
	t          *Tensor
	w          *window
	size, swap int64

	outer []axis  // dimensions around the block's
	at    []int64 // where the block is in them
	split axis    // the dimension of which a block is a range
	begin int64   // the range's begin
	rows  int64   // its length, of a full block
	inner []axis  // dimensions inside
	plain int64   // elements in one row of split
	done  bool
	buf   []byte
	out   []byte // the rest of buf
}

// newGatherer returns a gatherer with blocks of about so many bytes.
func newGatherer(t *Tensor, r io.ReaderAt, size, swap, block int64) *gatherer {
	off, n := t.Span()
	g := &gatherer{t: t, size: size, swap: swap, w: &window{r: r, base: off, end: n}}
	axes := merged(t)
	plain, i := int64(1), len(axes)
	for i > 1 && axes[i-1].n <= block/(plain*size) {
		i--
		axes[i].out = plain
		plain *= axes[i].n
	}
	g.outer, g.split, g.inner, g.plain = axes[:i-1], axes[i-1], axes[i:], plain
	g.split.out = plain
	g.rows = min(g.split.n, max(1, block/(plain*size)))
	g.at = make([]int64, len(g.outer))
	return g
}

// merged returns the tensor's dimensions, without those of length 1 and with
// those as one that lie in the storage as one would.
func merged(t *Tensor) []axis {
	var axes []axis
	for i, n := range t.Shape {
		if n == 1 {
			continue
		}
		a := axis{n: n, stride: t.Stride[i]}
		if k := len(axes) - 1; k >= 0 && axes[k].stride == a.n*a.stride {
			axes[k].n, axes[k].stride = axes[k].n*a.n, a.stride
			continue
		}
		axes = append(axes, a)
	}
	return axes
}

func (g *gatherer) Read(p []byte) (int, error) {
	if len(g.out) == 0 {
		if g.done {
			return 0, io.EOF
		}
		if err := g.next(); err != nil {
			return 0, fmt.Errorf("tensor %s: %w", quote(g.t.Name), err)
		}
	}
	n := copy(p, g.out)
	g.out = g.out[n:]
	return n, nil
}

// next gathers a block and goes on to the one behind it.
func (g *gatherer) next() error {
	block := g.split
	block.n = min(g.rows, g.split.n-g.begin)
	base := g.begin * g.split.stride
	for i, a := range g.outer {
		base += g.at[i] * a.stride
	}
	if g.buf == nil {
		g.buf = make([]byte, g.rows*g.plain*g.size)
	}
	g.out = g.buf[:block.n*g.plain*g.size]
	if err := g.gather(base, append([]axis{block}, g.inner...)); err != nil {
		return err
	}
	reverse(g.out, g.swap)
	if g.begin += block.n; g.begin < g.split.n {
		return nil
	}
	g.begin = 0
	for i := len(g.outer) - 1; i >= 0; i-- {
		if g.at[i]++; g.at[i] < g.outer[i].n {
			return nil
		}
		g.at[i] = 0
	}
	g.done = true
	return nil
}

// gather fills out with the elements of these dimensions from the one at base,
// in the storage's order, so that the window moves forward: the dimension with
// the longest stride outermost, repeated elements innermost.
func (g *gatherer) gather(base int64, axes []axis) error {
	slices.SortStableFunc(axes, func(a, b axis) int { return cmp.Compare(b.stride, a.stride) })
	// From the innermost outwards, how many elements of the storage are worth
	// reading as one run.
	run, dense := int64(1), len(axes)
	g.w.back = 0
	for dense > 0 {
		a := axes[dense-1]
		gap := a.stride - run
		if gap*g.size > gapBytes {
			break
		}
		g.w.back = max(g.w.back, min(-gap*g.size, windowBytes/2))
		run = (a.n-1)*a.stride + run
		dense--
	}
	return g.walk(base, 0, axes, dense, run)
}

// walk goes through the dimensions that are leapt over, and reads a run in each
// place.
func (g *gatherer) walk(in, out int64, axes []axis, leaps int, run int64) error {
	if leaps == 0 {
		g.w.stop = (in + run) * g.size
		return g.fill(in, out, axes)
	}
	a := axes[0]
	for range a.n {
		if err := g.walk(in, out, axes[1:], leaps-1, run); err != nil {
			return err
		}
		in += a.stride
		out += a.out
	}
	return nil
}

// fill copies the elements of one run.
func (g *gatherer) fill(in, out int64, axes []axis) error {
	if len(axes) == 0 {
		b, err := g.w.bytes(in*g.size, g.size)
		copy(g.out[out*g.size:], b)
		return err
	}
	a := axes[0]
	if len(axes) == 1 && a.stride == 1 && a.out == 1 {
		return g.w.copy(g.out[out*g.size:(out+a.n)*g.size], in*g.size)
	}
	for range a.n {
		if err := g.fill(in, out, axes[1:]); err != nil {
			return err
		}
		in += a.stride
		out += a.out
	}
	return nil
}

// window is a part of the span that is held in memory.
type window struct {
	r         io.ReaderAt
	base, end int64 // the span in the archive: where, and how long

	stop int64 // reading further than this is waste
	back int64 // how far behind the last read the next may be
	off  int64 // of buf, in the span
	n    int64 // of buf
	buf  []byte
}

// bytes returns n bytes at off of the span, valid until the next call.
func (w *window) bytes(off, n int64) ([]byte, error) {
	if off < w.off || off+n > w.off+w.n {
		if err := w.load(off, n); err != nil {
			return nil, err
		}
	}
	return w.buf[off-w.off : off-w.off+n], nil
}

// copy fills p from off of the span.
func (w *window) copy(p []byte, off int64) error {
	for len(p) > 0 {
		n := min(int64(len(p)), windowBytes/2)
		if left := w.off + w.n - off; off >= w.off && left > 0 {
			n = min(n, left)
		}
		b, err := w.bytes(off, n)
		if err != nil {
			return err
		}
		p, off = p[copy(p, b):], off+n
	}
	return nil
}

// load moves the window so that it holds n bytes at off.
func (w *window) load(off, n int64) error {
	if w.buf == nil {
		w.buf = make([]byte, min(windowBytes, w.end))
	}
	begin := max(0, off-w.back)
	end := min(w.end, max(w.stop, off+n), begin+int64(len(w.buf)))
	w.off, w.n = begin, 0
	got, err := w.r.ReadAt(w.buf[:end-begin], w.base+begin)
	if int64(got) < end-begin {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("read %d bytes at %d: %w", end-begin, w.base+begin, err)
	}
	w.n = end - begin
	return nil
}
