package carton

import (
	"bytes"
	"context"
	"hash/crc32"
	"io"

	"github.com/carton-oci/carton-oci/pkg/progress"
)

// StreamBuffer is the size in bytes up to which [Stream] keeps a member in memory, so
// that it is read once.
const StreamBuffer = 16 << 20

// StreamOptions say how a carton is streamed. The zero value is useful.
type StreamOptions struct {
	// Thin makes a thin carton, as in [AssembleOptions].
	Thin *Links
	// Progress is told about every member that is read. Of one that is read twice the
	// total is twice its size.
	Progress progress.Func
}

// Stream writes to w, from the first byte to the last, what [Assemble] writes to a
// file: the canonical carton ([Plan]) of a source, the same bytes.
//
// In a zip a member's CRC stands before its content, and nothing but the content
// tells it. So a member over [StreamBuffer] bytes is read twice, unless the source
// has its CRC ([Source.CRC]): once to learn the CRC, and again on its way to w. No
// byte of a member is written before all of it was verified; but where it is read
// again, or the source had the CRC, it is verified only as it goes.
//
// What was written can't be taken back. After an error w has the beginning of a zip
// without the directory at its end, which no reader of zips accepts.
func Stream(ctx context.Context, w io.Writer, src Source, opts StreamOptions) error {
	members, plan, text, err := planOf(ctx, src, opts.Thin)
	if err != nil {
		return err
	}
	s := &stream{ctx: ctx, w: w, src: src, plan: plan, report: opts.Progress}
	if s.report == nil {
		s.report = func(progress.Event) {}
	}
	sizes := make(map[string]Member, len(members))
	for _, m := range members {
		sizes[m.Path] = m
		if m.Target == "" {
			s.report(progress.Event{Name: m.Path, State: progress.Started, Total: s.total(m)})
		}
	}
	for i := range plan.Len() {
		m := plan.Member(i)
		content, isText := text[m.Path]
		switch {
		case isText:
			err = s.known(i, content)
		case m.Target != "":
			err = s.known(i, []byte(m.Target))
		default:
			err = s.member(i, sizes[m.Path])
		}
		if err != nil {
			return named(m.Path, err)
		}
	}
	tail, err := plan.Tail()
	if err != nil {
		return err
	}
	_, err = w.Write(tail)
	return err
}

// stream is a canonical carton that is being streamed.
type stream struct {
	ctx    context.Context //nolint:containedctx // of one call
	w      io.Writer
	src    Source
	plan   *Plan
	report progress.Func
	buffer bytes.Buffer
}

// total is how many bytes are read for a member.
func (s *stream) total(m Member) int64 {
	if _, ok := s.src.CRC(m.Path); ok || m.Size <= StreamBuffer {
		return m.Size
	}
	return 2 * m.Size
}

// known writes a member whose content is here.
func (s *stream) known(i int, content []byte) error {
	if err := s.header(i, crcOf(content)); err != nil {
		return err
	}
	_, err := s.w.Write(content)
	return err
}

// header writes a member's local header.
func (s *stream) header(i int, crc uint32) error {
	if err := s.plan.SetCRC(s.plan.Member(i).Path, crc); err != nil {
		return err
	}
	h, err := s.plan.Header(i)
	if err == nil {
		_, err = s.w.Write(h)
	}
	return err
}

// member writes a regular member of the source.
func (s *stream) member(i int, m Member) error {
	sum := crc32.NewIEEE()
	crc, ok := s.src.CRC(m.Path)
	var through int64
	switch {
	case m.Size <= StreamBuffer:
		s.buffer.Reset()
		if err := s.read(m, &s.buffer, 0); err != nil {
			return err
		}
		if err := s.known(i, s.buffer.Bytes()); err != nil {
			return err
		}
	case !ok:
		if err := s.read(m, sum, 0); err != nil {
			return err
		}
		crc, through = sum.Sum32(), m.Size
		fallthrough
	default:
		if err := s.header(i, crc); err != nil {
			return err
		}
		sum.Reset()
		if err := s.read(m, io.MultiWriter(s.w, sum), through); err != nil {
			return err
		}
		// The hash was right; a CRC of the source's own is compared by it, too.
		if got := sum.Sum32(); got != crc {
			return errorf(ErrChecksum, m.Path, "got CRC %08x, want %08x", got, crc)
		}
	}
	s.report(progress.Event{Name: m.Path, State: progress.Finished, Done: s.total(m), Total: s.total(m)})
	return nil
}

// read copies a member's content, verified at its end. through is how much of it
// was read before.
func (s *stream) read(m Member, w io.Writer, through int64) error {
	r, err := s.src.Open(s.ctx, m.Path)
	if err != nil {
		return err
	}
	defer r.Close()
	told := &teller{w: w, tell: func(n int64) {
		s.report(progress.Event{Name: m.Path, State: progress.Moving, Done: through + n, Total: s.total(m)})
	}}
	// One byte more than there may be: the source's own check ends what is longer.
	n, err := io.Copy(told, io.LimitReader(r, m.Size+1))
	if err == nil && n != m.Size {
		err = errorf(ErrChecksum, m.Path, "got %d bytes, want %d", n, m.Size)
	}
	return err
}

// teller tells how much was written.
type teller struct {
	w    io.Writer
	n    int64
	tell func(n int64)
}

func (t *teller) Write(b []byte) (int, error) {
	n, err := t.w.Write(b)
	t.n += int64(n)
	t.tell(t.n)
	return n, err
}
