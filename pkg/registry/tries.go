package registry

import "context"

// tries counts the failures in a row of one piece of work: of an upload with every
// question that it asks on its way, of a manifest with the answers that broke off.
// Loops within loops count in one, or eight attempts of eight would be sixty-four.
type tries struct{ failures int }

type triesKey struct{}

// withTries makes the requests under the context count in t.
func withTries(ctx context.Context, t *tries) context.Context {
	return context.WithValue(ctx, triesKey{}, t)
}

// triesOf returns the count of the work that a request belongs to, one of its own
// where it belongs to none.
func triesOf(ctx context.Context) *tries {
	if t, ok := ctx.Value(triesKey{}).(*tries); ok {
		return t
	}
	return &tries{}
}

// oneWork makes the requests under the context one piece of work, if they are not
// part of one already.
func oneWork(ctx context.Context) context.Context {
	if _, ok := ctx.Value(triesKey{}).(*tries); ok {
		return ctx
	}
	return withTries(ctx, &tries{})
}

// spent counts a failure, and reports whether it was the last.
func (t *tries) spent(p Policy) bool {
	t.failures++
	return p.Exhausted(t.failures)
}
