package httprange

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
)

// Stat returns the size in bytes of the content behind a request, -1 where the
// server does not say without sending it, which is so for encoded content too.
// It asks by HEAD, and by a range of one byte where HEAD gives no answer: a
// presigned URL is good for GET alone, and some servers count nothing for HEAD.
// Errors are [*Error].
func (g *Getter) Stat(ctx context.Context, newRequest NewRequest) (int64, error) {
	head := Getter{Do: g.Do, Policy: g.Policy, Answered: g.Answered}
	head.Policy.Attempts = min(2, g.Policy.attempts())
	size, err := head.stat(ctx, -1, func(ctx context.Context) (*http.Request, error) {
		req, err := newRequest(ctx)
		if err == nil {
			req.Method = http.MethodHead
		}
		return req, err
	})
	if size > 0 || ctx.Err() != nil || errors.Is(err, ErrNotAllowed) {
		return size, err
	}
	whole := *g
	whole.NeedRanges = false
	return whole.stat(ctx, 1, newRequest)
}

// stat asks for n bytes and returns the size that the answer states.
func (g *Getter) stat(ctx context.Context, n int64, newRequest NewRequest) (int64, error) {
	b, err := g.Open(ctx, newRequest, 0, n, -1)
	if err != nil {
		return -1, err
	}
	defer func() { _ = b.Close() }()
	size := b.Size()
	if n > 0 {
		// One byte, so that the connection can be used again.
		if _, err := io.Copy(io.Discard, b); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return -1, err
		}
	}
	if e := strings.ToLower(b.Header().Get("Content-Encoding")); e != "" && e != "identity" {
		return -1, nil
	}
	return size, nil
}
