package inspect

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/modelfile/safetensors"
)

// headerAtOnce is how much of a safetensors file is asked for first, in bytes: a
// header of 100 kB, however that is counted, and its length. Nearly all are
// shorter.
const headerAtOnce = 8 + 100<<10

// readSafetensors reads the header of a safetensors member. What is wrong with
// the header is the note; the error is the source's.
func readSafetensors(ctx context.Context, src carton.Source, m carton.Member, s *share) (h *safetensors.Header, note string, err error) {
	in := &headerReader{ctx: ctx, src: src, member: m, share: s}
	defer in.close()
	h, err = safetensors.ReadHeader(in, m.Size)
	switch {
	case in.err != nil:
		return nil, "", fmt.Errorf("read the header of %s: %w", carton.QuotePath(m.Path), in.err)
	case err != nil:
		return nil, err.Error(), nil
	}
	return h, "", nil
}

// headerReader reads a member's beginning: where ranges are cheap one of them,
// or two where the header is long; elsewhere one stream. It tells errors of the
// source from those of the content.
type headerReader struct {
	ctx    context.Context //nolint:containedctx // lives within one call
	src    carton.Source
	member carton.Member
	share  *share

	began  bool
	buf    []byte        // of the first range, not given out yet
	rest   [2]int64      // the range behind it: offset and length
	stream io.ReadCloser // that range, or all of the member
	err    error         // of the source
}

func (r *headerReader) close() {
	if r.stream != nil {
		_ = r.stream.Close() // nothing more is wanted of it
	}
}

func (r *headerReader) Read(p []byte) (int, error) {
	if !r.began && r.err == nil {
		r.began = true
		r.err = r.begin()
	}
	if r.err == nil && len(r.buf) > 0 {
		n := copy(p, r.buf)
		r.buf = r.buf[n:]
		return n, nil
	}
	if r.err == nil && r.stream == nil && r.rest[1] > 0 {
		r.stream, r.err = r.src.OpenRange(r.ctx, r.member.Path, r.rest[0], r.rest[1])
	}
	switch {
	case r.err != nil:
		return 0, r.err
	case r.stream == nil:
		return 0, io.EOF
	}
	n, err := r.stream.Read(p)
	// Where nobody knows the size, a range may reach past the end.
	short := r.member.Size < 0 && errors.Is(err, io.ErrUnexpectedEOF)
	if err != nil && !errors.Is(err, io.EOF) && !short {
		r.err = err
	}
	return n, err
}

// begin reads the first range, or opens the member where ranges are dear. Behind
// the first range nothing is asked for but the rest of the header.
func (r *headerReader) begin() (err error) {
	if !ranged(r.member) {
		return r.forward()
	}
	n := int64(headerAtOnce)
	if r.member.Size >= 0 {
		n = min(n, r.member.Size)
	}
	if n == 0 {
		return nil
	}
	if r.buf, err = readRange(r.ctx, r.src, r.member, 0, n); err != nil || len(r.buf) < 8 {
		return err
	}
	length := headerLength(r.buf)
	if !r.share.enough(length) {
		if err := r.share.all(r.ctx); err != nil {
			return err
		}
	}
	end := 8 + length
	if r.member.Size >= 0 {
		end = min(end, r.member.Size)
	}
	if int64(len(r.buf)) == n {
		r.rest = [2]int64{n, end - n}
	}
	return nil
}

// forward opens the member where ranges are dear. Where others have the memory
// that its header needs, it is closed until they are done.
func (r *headerReader) forward() error {
	for {
		stream, err := r.src.OpenRange(r.ctx, r.member.Path, 0, -1)
		if err != nil {
			return err
		}
		length := make([]byte, 8)
		n, err := io.ReadFull(stream, length)
		r.stream, r.buf = stream, length[:n]
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return nil // the stream says so again
		case err != nil:
			return err
		case r.share.enough(headerLength(length)):
			return nil
		}
		_ = stream.Close() // nothing was wrong with it
		r.stream = nil
		if err := r.share.all(r.ctx); err != nil {
			return err
		}
	}
}

// headerLength is the length of the header of a file that begins with b, as far
// as it is read.
func headerLength(b []byte) int64 {
	return int64(min(binary.LittleEndian.Uint64(b), safetensors.MaxHeaderBytes))
}

// readRange reads n bytes of a member, unverified; fewer where the member's size
// is not known and it ends before.
func readRange(ctx context.Context, src carton.Source, m carton.Member, off, n int64) ([]byte, error) {
	in, err := src.OpenRange(ctx, m.Path, off, n)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	// As much as comes, not as much as was asked for at once: a header may be long
	// and a size a lie.
	var b bytes.Buffer
	_, err = io.Copy(&b, in)
	if m.Size < 0 && errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return b.Bytes(), err
}
