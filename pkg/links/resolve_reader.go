package links

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"io/fs"
	"sync"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

// reader reads a linked content from one URL after another.
type reader struct {
	s      *resolved
	ctx    context.Context //nolint:containedctx // a reader is one call's work
	cancel context.CancelFunc
	path   string
	hash   string
	size   int64     // that a host has said; -1: none
	off, n int64     // what was asked for; n < 0: to the end
	sum    hash.Hash // nil: a range, not verified

	mu     sync.Mutex
	body   io.ReadCloser
	url    string
	got    int64           // bytes delivered
	from   []string        // the URLs that they came from
	tried  map[string]bool // URLs that were opened
	failed failures
	err    error // what Read returns from now on
}

// start makes r verify what it reads.
func (r *reader) start() { r.sum = sha256.New() }

// next opens the first URL that was not tried at the byte that is due.
func (r *reader) next() error {
	for _, u := range r.s.urls(r.hash) {
		if r.tried[u] {
			continue
		}
		r.tried[u] = true
		left := r.n
		if left >= 0 {
			left -= r.got
		}
		body, err := r.s.fetch.Open(r.ctx, Link{Hash: r.hash, URL: u}, r.off+r.got, left)
		if err == nil {
			r.body, r.url = body, u
			return nil
		}
		if err := r.ctx.Err(); err != nil {
			return err
		}
		r.gaveUp(u, err)
	}
	return r.nobody()
}

// gaveUp notes why a URL could not be read.
func (r *reader) gaveUp(u string, err error) {
	r.failed = append(r.failed, failure{u, err})
	r.s.failed(r.hash, u)
}

// nobody is the error where no URL gave the content.
func (r *reader) nobody() error {
	r.s.mu.Lock()
	wrong := r.s.candidates(r.hash).wrong
	all := append(append(failures(nil), r.failed...), wrong...)
	r.s.mu.Unlock()
	kind := carton.ErrLink
	if len(r.failed) == 0 && len(wrong) > 0 {
		kind = carton.ErrChecksum
	}
	return &carton.Error{Path: r.path, Kind: kind, Msg: "no URL of LINKS gives it", Err: all}
}

func (r *reader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.err == nil {
		n, err := r.body.Read(p)
		if n > 0 {
			r.deliver(p[:n])
		}
		switch {
		case r.size >= 0 && r.off+r.got > r.size:
			r.err = r.end(io.EOF)
			if r.err == io.EOF { //nolint:errorlint // as end returns it
				break // who said the size was wrong, and the content is right
			}
			return 0, r.err
		case err == nil:
		case isEnd(err) && r.sum == nil, err == io.EOF:
			r.err = r.end(err)
		default:
			r.err = r.broke(err)
		}
		if n > 0 || err == nil {
			return n, nil
		}
	}
	return 0, r.err
}

// deliver counts bytes that the caller gets.
func (r *reader) deliver(p []byte) {
	if r.sum != nil {
		r.sum.Write(p)
	}
	r.got += int64(len(p))
	if len(r.from) == 0 || r.from[len(r.from)-1] != r.url {
		r.from = append(r.from, r.url)
	}
}

// broke goes on at another URL, or returns the error to end with.
func (r *reader) broke(err error) error {
	_ = r.body.Close()
	r.body = nil
	if err := r.ctx.Err(); err != nil {
		return err
	}
	r.gaveUp(r.url, err)
	if r.got > 0 && r.sum != nil && r.s.onlyWhole(r.hash) {
		err := r.nobody()
		if len(r.s.urls(r.hash)) > 1 {
			return temporaryError{err}
		}
		return err
	}
	return r.next()
}

// end judges the content once all of it was read.
func (r *reader) end(err error) error {
	if r.sum == nil {
		if r.n > r.got {
			return io.ErrUnexpectedEOF
		}
		return err
	}
	got := hex.EncodeToString(r.sum.Sum(nil))
	if got == r.hash {
		return io.EOF
	}
	from := r.from
	if len(from) == 0 {
		from = []string{r.url}
	}
	wrong := errorf(carton.ErrChecksum, r.path, "got sha256 %s, want %s", got, r.hash)
	left := r.s.wrong(r.hash, from, wrong)
	shown := error(&carton.Error{Path: r.path, Kind: carton.ErrChecksum, Err: failure{from[len(from)-1], wrong}})
	if left > 0 {
		return temporaryError{shown}
	}
	return shown
}

// Close ends the read, also one that is under way.
func (r *reader) Close() error {
	r.cancel()
	r.s.mu.Lock()
	delete(r.s.open, r)
	r.s.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = fs.ErrClosed
	}
	if r.body == nil {
		return nil
	}
	body := r.body
	r.body = nil
	return body.Close()
}
