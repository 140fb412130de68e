package httprange

import "context"

type onlyRanges struct{}

// OnlyRanges returns a context under which a range is worth having only for what
// it costs: whoever would have to read what lies before it, or to send all,
// returns an error wrapping ErrNoRanges instead. It goes with the context because
// the question passes through interfaces that know nothing of HTTP, and every
// place that opens ranges has its own answer.
func OnlyRanges(ctx context.Context) context.Context {
	return context.WithValue(ctx, onlyRanges{}, true)
}

// IsOnlyRanges reports whether ctx is one that [OnlyRanges] made.
func IsOnlyRanges(ctx context.Context) bool { return ctx.Value(onlyRanges{}) != nil }
