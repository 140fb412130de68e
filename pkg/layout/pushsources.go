package layout

import (
	"context"
	"io"
	"sync"

	"github.com/carton-oci/carton-oci/internal/iox"
)

// sources bounds how many sources a push has open at once: it holds one for each. A
// layer that is read through Open counts once, however often its store opens it: who
// opens it again before closing the last must not wait for itself. Every range counts.
type sources chan struct{}

func (s sources) take(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s sources) give() { <-s }

// read calls what reads a source by itself.
func (s sources) read(ctx context.Context, f func(context.Context) error) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.give()
	return f(ctx)
}

// bound has a layer's sources wait for those of the other layers.
func (s sources) bound(l *Layer) {
	open, openRange := l.Open, l.OpenRange
	if open != nil {
		one := &oneSource{of: s}
		l.Open = func(ctx context.Context, off int64) (io.ReadCloser, error) {
			return opened(ctx, one.take, one.give, func() (io.ReadCloser, error) { return open(ctx, off) })
		}
	}
	if openRange != nil {
		l.Connections = cap(s)
		l.OpenRange = func(ctx context.Context, off, n int64) (io.ReadCloser, error) {
			return opened(ctx, s.take, s.give, func() (io.ReadCloser, error) { return openRange(ctx, off, n) })
		}
	}
}

// opened takes a place for what is opened, and gives it back with the first Close.
func opened(ctx context.Context, take func(context.Context) error, give func(), open func() (io.ReadCloser, error)) (io.ReadCloser, error) {
	if err := take(ctx); err != nil {
		return nil, err
	}
	r, err := open()
	if err != nil {
		give()
		return nil, err
	}
	return iox.Over{ReadCloser: r, Under: closerFunc(sync.OnceValue(func() error { give(); return nil }))}, nil
}

type closerFunc func() error

func (f closerFunc) Close() error { return f() }

// oneSource is what one layer opens through Open.
type oneSource struct {
	of   sources
	mu   sync.Mutex
	open int
}

func (o *oneSource) take(ctx context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open == 0 {
		if err := o.of.take(ctx); err != nil {
			return err
		}
	}
	o.open++
	return nil
}

func (o *oneSource) give() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open--; o.open == 0 {
		o.of.give()
	}
}
