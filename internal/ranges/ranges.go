// Package ranges says what a range of something may cost. The question and its
// answer pass through interfaces that say nothing of it, and every place that opens
// ranges has its own: a registry, a folder of blobs, the server of a link.
package ranges

import (
	"context"
	"errors"
)

// ErrNone: a place does not give ranges where they are needed.
var ErrNone = errors.New("server does not honour range requests")

type onlyKey struct{}

// Only returns a context under which a range is worth having only for what it
// costs: whoever would have to read what lies before it, or to send all, returns
// an error wrapping ErrNone instead.
func Only(ctx context.Context) context.Context {
	return context.WithValue(ctx, onlyKey{}, true)
}

// IsOnly reports whether ctx is one that [Only] made.
func IsOnly(ctx context.Context) bool { return ctx.Value(onlyKey{}) != nil }
