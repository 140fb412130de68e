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
	// much of its storage is read at once for that.
	blockBytes  = 16 << 20
	windowBytes = 1 << 20
	// gapBytes is the longest gap between elements that is read with them.
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
		return nil, fmt.Errorf("tensor %s: %w: repeats %d bytes of its storage to %d",
			quote(t.Name), ErrUnreadable, n, t.Bytes())
	}
	if t.Bytes() == 0 {
		return &iox.Exactly{}, nil
	}
	switch data, err := t.entry.Locate(r); {
	case err != nil:
		return nil, zipError(err)
	case data != predicted(t.entry):
		return nil, fmt.Errorf("%w: %s: its local header has the data begin at %d, and the directory at %d",
			ErrFormat, errtext.Quote(t.entry.Name), data, predicted(t.entry))
	}
	if t.Plain() {
		return &iox.Exactly{R: io.NewSectionReader(r, off, n), N: n}, nil
	}
	return newGatherer(t, r, blockBytes), nil
}

// axis is a dimension: its length, and how far its elements are apart in the
// storage and in a block of the tensor, in elements.
type axis struct {
	n, stride, out int64
}

// extent returns how many elements of the storage these dimensions reach over.
func extent(axes []axis) int64 {
	n := int64(1)
	for _, a := range axes {
		n += (a.n - 1) * a.stride
	}
	return n
}

// gatherer makes a tensor's bytes block by block. A block is a range of one
// dimension, split, with all of those inside it.
type gatherer struct {
	t    *Tensor
	r    io.ReaderAt
	base int64 // of the tensor's first element, in the archive
	size int64 // of an element, in bytes

	outer, inner []axis // the dimensions around split, and those inside it
	split        axis
	row          int64 // elements of one row of split
	rows         int64 // of split, in a full block
	parts        int64 // blocks that split is made of
	block, end   int64 // the next block, and how many there are

	window []byte // of the storage
	buf    []byte // a block
	out    []byte // the rest of it
}

// newGatherer returns a gatherer with blocks of about so many bytes.
func newGatherer(t *Tensor, r io.ReaderAt, block int64) *gatherer {
	off, n := t.Span()
	g := &gatherer{t: t, r: r, base: off, size: t.elementSize(), row: 1, window: make([]byte, min(n, windowBytes))}
	axes := merged(t)
	i := len(axes) - 1
	for ; i > 0 && axes[i].n <= block/(g.row*g.size); i-- {
		axes[i].out = g.row
		g.row *= axes[i].n
	}
	g.outer, g.split, g.inner = axes[:i], axes[i], axes[i+1:]
	g.split.out = g.row
	g.rows = min(g.split.n, max(1, block/(g.row*g.size)))
	g.parts = (g.split.n + g.rows - 1) / g.rows
	g.end = g.parts
	for _, a := range g.outer {
		g.end *= a.n
	}
	g.buf = make([]byte, g.rows*g.row*g.size)
	return g
}

// merged returns the tensor's dimensions, those as one that lie in the storage as
// one would.
func merged(t *Tensor) []axis {
	axes := []axis{{n: 1}}
	for i, n := range t.Shape {
		a, last := axis{n: n, stride: t.Stride[i]}, &axes[len(axes)-1]
		switch {
		case n == 1:
		case last.n == 1:
			*last = a
		case last.stride == a.n*a.stride:
			last.n, last.stride = last.n*a.n, a.stride
		default:
			axes = append(axes, a)
		}
	}
	return axes
}

func (g *gatherer) Read(p []byte) (int, error) {
	if len(g.out) == 0 {
		if g.block == g.end {
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

// next gathers a block.
func (g *gatherer) next() error {
	part, rest := g.block%g.parts, g.block/g.parts
	g.block++
	split := g.split
	split.n = min(g.rows, split.n-part*g.rows)
	from := part * g.rows * split.stride
	for i := len(g.outer) - 1; i >= 0; i-- {
		a := g.outer[i]
		from += rest % a.n * a.stride
		rest /= a.n
	}
	// In the storage's order, so that reading goes forward: the longest stride
	// outermost, repeated elements innermost.
	axes := append([]axis{split}, g.inner...)
	slices.SortStableFunc(axes, func(a, b axis) int { return cmp.Compare(b.stride, a.stride) })
	leaps := len(axes)
	for leaps > 0 && (axes[leaps-1].stride-extent(axes[leaps:]))*g.size <= gapBytes {
		leaps--
	}
	out := g.buf[:split.n*g.row*g.size]
	if err := g.gather(axes, leaps, from, 0); err != nil {
		return err
	}
	g.t.toLittle(out)
	g.out = out
	return nil
}

// gather copies the elements of these dimensions from the one at from of the
// storage to that at to of the block. Of the first so many dimensions each index
// is read by itself, for the gaps are long; of the others as many at once as the
// window holds.
func (g *gatherer) gather(axes []axis, leaps int, from, to int64) error {
	n := extent(axes) * g.size
	if leaps == 0 && n <= windowBytes {
		if err := g.read(g.window[:n], g.base+from*g.size); err != nil {
			return err
		}
		g.place(axes, 0, to)
		return nil
	}
	a, inner := axes[0], axes[1:]
	step := int64(1)
	if leaps == 0 {
		step = max(1, (windowBytes/g.size-extent(inner))/a.stride+1)
	}
	for i := int64(0); i < a.n; i += step {
		some := inner
		if step > 1 {
			some = append([]axis{{min(step, a.n-i), a.stride, a.out}}, inner...)
		}
		if err := g.gather(some, max(0, leaps-1), from+i*a.stride, to+i*a.out); err != nil {
			return err
		}
	}
	return nil
}

// place copies elements from the window to the block.
func (g *gatherer) place(axes []axis, from, to int64) {
	if len(axes) == 0 {
		copy(g.buf[to*g.size:(to+1)*g.size], g.window[from*g.size:])
		return
	}
	a := axes[0]
	if len(axes) == 1 && a.stride == 1 && a.out == 1 {
		copy(g.buf[to*g.size:(to+a.n)*g.size], g.window[from*g.size:])
		return
	}
	for i := range a.n {
		g.place(axes[1:], from+i*a.stride, to+i*a.out)
	}
}

// read fills b from the archive at off.
func (g *gatherer) read(b []byte, off int64) error {
	n, err := g.r.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read %d bytes at %d: %w", len(b), off, err)
}
