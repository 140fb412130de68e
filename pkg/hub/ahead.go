package hub

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/internal/ranges"
)

const (
	// Ahead is how much memory the readers of a client take together for what they
	// read ahead, in bytes.
	Ahead = 16 << 20
	// pieceBytes is the size of one range.
	pieceBytes = 2 << 20
	// piecesEach is how many ranges one reader has under way.
	piecesEach = 4
	// aloneBytes is what a reader asks for at once that finds no memory free.
	aloneBytes = 32 << 20
)

// ahead reads a range of a file in several requests at once. Where no memory is
// free for that it reads on by one.
type ahead struct {
	file      *file
	ctx       context.Context //nolint:containedctx // a reader is one piece of work
	cancel    context.CancelFunc
	pos, end  int64    // of what was given, and of the range
	asked     int64    // how far was asked for
	pieces    []*piece // under way, in their order
	alone     io.ReadCloser
	aloneLeft int64
	err       error
}

// piece is one range under way.
type piece struct {
	buf  []byte // all of a buffer
	data []byte // what is left of the content
	err  error
	done chan struct{}
}

// openAhead opens a long range. A server that gives no ranges is ranges.ErrNone.
func (f *file) openAhead(ctx context.Context, off, n int64) (io.ReadCloser, error) {
	a := &ahead{file: f, pos: off, asked: off, end: off + n}
	a.ctx, a.cancel = context.WithCancel(ranges.Only(ctx))
	if err := a.ready(); err != nil {
		_ = a.Close()
		return nil, err
	}
	return a, nil
}

// fill asks for what comes next, as far as there is memory.
func (a *ahead) fill() {
	for a.alone == nil && a.asked < a.end && len(a.pieces) < piecesEach {
		select {
		case buf := <-a.file.snapshot.client.buffers:
			if buf == nil {
				buf = make([]byte, pieceBytes)
			}
			p := &piece{buf: buf, data: buf[:min(pieceBytes, a.end-a.asked)], done: make(chan struct{})}
			go p.read(a.ctx, a.file, a.asked)
			a.pieces = append(a.pieces, p)
			a.asked += int64(len(p.data))
		default:
			return
		}
	}
}

func (p *piece) read(ctx context.Context, f *file, off int64) {
	defer close(p.done)
	body, err := f.openBody(ctx, off, int64(len(p.data)))
	if err == nil {
		_, err = io.ReadFull(body, p.data)
		err = errors.Join(iox.Unexpected(err), body.Close())
	}
	p.err = err
}

// ready waits until something can be read.
func (a *ahead) ready() error {
	a.fill()
	if len(a.pieces) > 0 {
		<-a.pieces[0].done // which ends with the context
		return a.pieces[0].err
	}
	if a.alone != nil {
		return nil
	}
	n := min(aloneBytes, a.end-a.pos)
	body, err := a.file.openBody(a.ctx, a.pos, n)
	if err != nil {
		return err
	}
	a.alone, a.aloneLeft, a.asked = body, n, a.pos+n
	return nil
}

// Read implements io.Reader.
func (a *ahead) Read(b []byte) (int, error) {
	if a.err == nil && a.pos == a.end {
		a.err = io.EOF
	}
	if a.err == nil && len(b) > 0 {
		a.err = a.ready()
	}
	if a.err != nil || len(b) == 0 {
		return 0, a.err
	}
	var n int
	if len(a.pieces) > 0 {
		n = a.take(b)
	} else {
		n, a.err = a.takeAlone(b)
	}
	a.pos += int64(n)
	return n, nil
}

// take gives what the first piece has.
func (a *ahead) take(b []byte) int {
	p := a.pieces[0]
	n := copy(b, p.data)
	if p.data = p.data[n:]; len(p.data) == 0 {
		a.pieces = a.pieces[1:]
		a.file.snapshot.client.buffers <- p.buf
	}
	return n
}

// takeAlone reads from the one request that there is.
func (a *ahead) takeAlone(b []byte) (int, error) {
	n, err := a.alone.Read(b[:min(int64(len(b)), a.aloneLeft)])
	a.aloneLeft -= int64(n)
	if a.aloneLeft == 0 {
		err = errors.Join(eofIsNone(err), a.alone.Close())
		a.alone = nil
		return n, err
	}
	return n, iox.Unexpected(err)
}

func eofIsNone(err error) error {
	if err == io.EOF { //nolint:errorlint // a wrapped end is a fault
		return nil
	}
	return err
}

// Close ends what is under way.
func (a *ahead) Close() error {
	a.cancel()
	for _, p := range a.pieces {
		<-p.done
		a.file.snapshot.client.buffers <- p.buf
	}
	a.pieces = nil
	if a.alone != nil {
		_ = a.alone.Close()
	}
	a.err = fs.ErrClosed
	return nil
}
