package httprange

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"sync/atomic"

	"github.com/carton-oci/carton-oci/internal/ranges"
)

// Getter opens ranges over HTTP. It may be used by many goroutines at once.
type Getter struct {
	// Do sends one request: an *http.Client's Do, or one that adds credentials.
	// It follows redirects.
	Do func(*http.Request) (*http.Response, error)
	// Policy says how long and how often to try.
	Policy Policy
	// CheckResponse turns a response with an error status into the caller's
	// error; nil from it, or a nil function, means a [*StatusError]. The body is
	// cut at 4 KiB and is closed by the Getter. Whether the request is repeated
	// depends on the status alone.
	CheckResponse func(*http.Response) error
	// Answered, where it is set, says whether the host has answered anything yet
	// ([Transient]), and is told when it does.
	Answered *atomic.Bool
	// NeedRanges makes a server that does not honour ranges ranges.ErrNone, as
	// [ranges.Only] does for one call.
	NeedRanges bool
	// Pinned makes content that changes between two requests ErrChanged, by ETag,
	// Last-Modified and size. It is for content that nobody has a hash of.
	Pinned bool
}

// NewRequest makes the GET request for the content, without a Range, anew for
// every attempt.
type NewRequest func(ctx context.Context) (*http.Request, error)

// Open opens n bytes from offset off; n < 0 means to the end. size is the
// content's size in bytes, -1 where it is not known: a response that says
// otherwise is ErrAnswer. A range that begins or ends past the content ends
// early with io.ErrUnexpectedEOF. Errors are [*Error].
//
// The first response has arrived when Open returns. ctx governs the whole read.
// The caller closes the Body; closing it early aborts what is under way.
func (g *Getter) Open(ctx context.Context, newRequest NewRequest, off, n, size int64) (*Body, error) {
	return g.open(ctx, newRequest, extent{off: off, n: n, size: size}, validator{})
}

// extent is what a caller wants.
type extent struct{ off, n, size int64 }

func (g *Getter) open(ctx context.Context, newRequest NewRequest, want extent, pin validator) (*Body, error) {
	if want.off < 0 || want.n > math.MaxInt64-want.off {
		return nil, fmt.Errorf("range of %d bytes at offset %d: %w", want.n, want.off, ErrAnswer)
	}
	b := &Body{g: g, newRequest: newRequest, pos: want.off, end: -1, size: -1, pin: pin}
	b.ctx, b.cancel = context.WithCancel(ctx)
	b.needRanges = g.NeedRanges || ranges.IsOnly(ctx)
	if want.n >= 0 {
		b.end = want.off + want.n
	}
	if want.size >= 0 {
		b.learnSize(want.size)
	}
	if b.pos == b.end {
		return b, nil
	}
	if err := b.connect(); err != nil {
		b.cancel()
		return nil, b.fail(err)
	}
	return b, nil
}

func (g *Getter) transient(err error) bool {
	return Transient(err, g.Answered == nil || g.Answered.Load())
}
