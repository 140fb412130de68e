package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/internal/readahead"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
)

// ErrElements: the tensor's elements can't be given.
var ErrElements = errors.New("has no elements to give")

// wholeSlack is how many bytes beside the tensor's a member may have to be read
// whole, and so verified, although a range would do.
const wholeSlack = 64 << 10

// Open opens the elements of a tensor of src: in C order, little-endian, without
// gaps. It asks for them alone where ranges are cheap. Where they are expensive, or
// where there is little else in the member, it reads the member whole; then
// verified is true, and the reader returns io.EOF only if the member had the
// hash that MANIFEST lists and its header says of the tensor what was said
// before.
//
// Strings, nested tensors and pickles are ErrElements.
func Open(ctx context.Context, src carton.Source, t *Tensor) (r io.ReadCloser, verified bool, err error) {
	if err := t.Readable(); err != nil {
		return nil, false, err
	}
	m := t.in.Member
	switch {
	case t.View != nil:
		r, err = openView(ctx, src, t)
		return r, false, err
	case t.in.format == "":
		r, err = src.Open(ctx, m.Path)
		if err != nil {
			return nil, false, err
		}
		return exactSize(r, t.Bytes, t.Member), true, nil
	case t.byRange() && t.Bytes == 0: // there is no range to ask for
		return io.NopCloser(strings.NewReader("")), false, nil
	case t.byRange():
		r, err = src.OpenRange(ctx, m.Path, t.Offset, t.Bytes)
		return r, false, err
	}
	r, err = src.Open(ctx, m.Path)
	if err != nil {
		return nil, false, err
	}
	w := &wholeMember{ReadCloser: r, tensor: t, left: t.Bytes}
	if err := w.start(); err != nil {
		_ = r.Close() // it says nothing that err doesn't
		return nil, false, err
	}
	return w, true, nil
}

// openView opens the elements of an archive's tensor. They are never verified:
// what says where they are was read from ranges.
func openView(ctx context.Context, src carton.Source, t *Tensor) (io.ReadCloser, error) {
	m := t.in.Member
	in := &memberAt{ctx: ctx, src: src, member: m}
	r, err := t.View.Read(in) // checks what stands before the elements, too
	if err != nil {
		return nil, errors.Join(in.Close(), err)
	}
	// What lies in one piece is one range, unless it is little more than what was
	// read already. Elsewhere the archive's reader knows which pieces it needs.
	off, n := t.View.Span()
	if !t.View.Plain() || n <= readahead.Most || !ranged(m) {
		return iox.ReadCloser{Reader: r, Closer: in}, nil
	}
	if err := in.Close(); err != nil {
		return nil, err
	}
	return src.OpenRange(ctx, m.Path, off, n)
}

// Readable says why [Open] can't give the tensor's elements, as far as that can
// be told without reading anything: an error wrapping ErrElements, or nil.
func (t *Tensor) Readable() error {
	fail := func(why string) error {
		return fmt.Errorf("tensor %s: %w: %s", errtext.Quoted(t.Name), ErrElements, why)
	}
	switch {
	case t.DType == string(carton.Nested):
		return hint.With(fail("it is nested"), "it is made of %s", strings.Join(t.Inner, ", "))
	case t.DType == string(carton.String):
		return hint.With(fail("strings are no numbers"), "they are a TOML file: cat SOURCE %s", t.Member)
	case t.View == nil && t.Bytes < 0:
		return fail("its type is not known here, and so its size is not")
	case t.View != nil && t.View.Unreadable() != "":
		err := fail("it " + t.View.Unreadable())
		return hint.With(err, "torch reads it; the whole archive is printed by: cat SOURCE %s", t.Member)
	}
	return nil
}

// exactSize gives a member that must have so many bytes.
func exactSize(r io.ReadCloser, left int64, member string) io.ReadCloser {
	return &iox.Watched{ReadCloser: r, Saw: func(b []byte, err error) error {
		left -= int64(len(b))
		if left < 0 || left > 0 && err == io.EOF { //nolint:errorlint // a wrapped end is a fault
			return &carton.Error{
				Path: member, Kind: carton.ErrFormat,
				Msg: "its size is not what its shape and type need",
			}
		}
		return err
	}}
}

// wholeMember reads a member to its end and gives one tensor of it.
type wholeMember struct {
	io.ReadCloser // the member, verified
	tensor        *Tensor
	left          int64
}

// start reads the header again, now from what will be verified, and what lies
// before the tensor.
func (w *wholeMember) start() error {
	t := w.tensor
	before := &io.LimitedReader{R: w.ReadCloser, N: t.Offset}
	c, err := t.in.reader().ReadHeader(before, -1)
	if err != nil {
		return w.changed(err)
	}
	same := func(o modelfile.Tensor) bool {
		return o.Name == t.Name && o.Offset == t.Offset && o.DType == t.DType && slices.Equal(o.Shape, t.Shape)
	}
	if !slices.ContainsFunc(c.Tensors, same) {
		return w.changed(nil)
	}
	_, err = io.CopyN(io.Discard, w.ReadCloser, before.N)
	return iox.Unexpected(err)
}

// changed is the error for a header that is not the one that was read first. A
// source that fails says so itself.
func (w *wholeMember) changed(err error) error {
	if _, rest := io.Copy(io.Discard, w.ReadCloser); rest != nil {
		return rest
	}
	return &carton.Error{
		Path: w.tensor.Member, Kind: carton.ErrChecksum, Msg: "its header is not the one that was read first", Err: err,
	}
}

func (w *wholeMember) Read(p []byte) (int, error) {
	if w.left > 0 {
		n, err := w.ReadCloser.Read(p[:min(w.left, int64(len(p)))])
		if w.left -= int64(n); w.left > 0 {
			err = iox.Unexpected(err)
		}
		return n, err
	}
	if _, err := io.Copy(io.Discard, w.ReadCloser); err != nil {
		return 0, err
	}
	return 0, io.EOF
}
