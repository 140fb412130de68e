package layout

import (
	"context"

	"github.com/carton-oci/carton-oci/pkg/progress"
)

// vouch is Layer.Vouch.
type vouch = func(ctx context.Context, near Fetcher, moved func(off int64)) error

// both asks two, of which either may be nil.
func both(a, b vouch) vouch {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	return func(ctx context.Context, near Fetcher, moved func(off int64)) error {
		if err := a(ctx, near, moved); err != nil {
			return err
		}
		return b(ctx, near, moved)
	}
}

// vouch asks whether a blob that is in the store is what it should be.
func (p *pusher) vouch(ctx context.Context, l Layer) error {
	if l.Vouch == nil {
		return nil
	}
	var near Fetcher
	if p.store.Local() {
		near = p.store
	}
	return l.Vouch(ctx, near, func(off int64) { p.report(l, progress.Moving, off, nil) })
}
