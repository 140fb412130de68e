package httprange

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// DefaultAttempts span half a minute to one.
const DefaultAttempts = 8

// Policy says how long and how often to try. The zero value of every field is
// its default.
type Policy struct {
	// Attempts is how many requests in a row may fail without a byte of progress;
	// the default is [DefaultAttempts].
	Attempts int
	// MinBackoff is the wait before the second attempt, doubled for every further
	// one up to MaxBackoff; each wait is shortened at random by up to a half.
	// Defaults: 500 ms and 30 s.
	MinBackoff, MaxBackoff time.Duration
	// MaxRetryAfter is the longest Retry-After that is honoured; the default is
	// 2 minutes. A server that asks for more is taken at its word: the read fails.
	MaxRetryAfter time.Duration
	// Stall is how long a server may send or take nothing, or less than package
	// stall's floor; the default is 30 s. The transport sees to it.
	Stall time.Duration

	// Retrying, where it is set, is told of every wait for another attempt. It is
	// called from many goroutines at once and returns quickly.
	Retrying func(Retry)

	// For tests.
	sleep  func(context.Context, time.Duration) error
	random func() float64
	now    func() time.Time
}

// Retry is a wait for another attempt at what failed.
type Retry struct {
	// Number is which retry in a row follows, of at most Of.
	Number, Of int
	// Wait is the time until then.
	Wait time.Duration
	// Err is why the last attempt failed.
	Err error
}

// ErrGaveUp is wrapped by the error of what failed so often in a row that it is
// not tried again.
var ErrGaveUp = errors.New("gave up")

// GaveUp returns the error of what failed so often in a row, the last time with
// err.
func GaveUp(attempts int, err error) error {
	return fmt.Errorf("%w after %d attempts: %w", ErrGaveUp, attempts, err)
}

// ErrRetryAfter means that the server asks for a longer pause than Policy allows.
var ErrRetryAfter = Final("server asks for a longer pause than is allowed")

func (p Policy) attempts() int             { return or(p.Attempts, DefaultAttempts) }
func (p Policy) minBackoff() time.Duration { return or(p.MinBackoff, 500*time.Millisecond) }
func (p Policy) maxBackoff() time.Duration { return or(p.MaxBackoff, 30*time.Second) }
func (p Policy) retryAfter() time.Duration { return or(p.MaxRetryAfter, 2*time.Minute) }

func or[T int | time.Duration](v, otherwise T) T {
	if v > 0 {
		return v
	}
	return otherwise
}

// Exhausted reports whether a transfer that failed so often in a row gives up.
func (p Policy) Exhausted(failures int) bool { return failures >= p.attempts() }

// Retryable reports whether a response with this status may be different the
// next time: 408, 429 and 5xx, except 501 and 505.
func (Policy) Retryable(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	return status >= 500 && status <= 599
}

// Next returns the wait after so many failures in a row, the last of them err, or
// the error to give up with: ErrGaveUp after the last attempt, ErrRetryAfter where
// [Policy.Delay] says so.
func (p Policy) Next(failures int, header http.Header, err error) (time.Duration, error) {
	if p.Exhausted(failures) {
		return 0, GaveUp(failures, err)
	}
	d, derr := p.Delay(failures, header)
	if derr != nil {
		return 0, fmt.Errorf("%w: %w", err, derr)
	}
	return d, nil
}

// Delay returns the wait after the given number of failures in a row, from 1.
// header is the failed response's, nil where there was none: its Retry-After,
// in seconds or as a date, is the least wait. One over MaxRetryAfter is
// ErrRetryAfter.
func (p Policy) Delay(failures int, header http.Header) (time.Duration, error) {
	d := p.minBackoff()
	for range failures - 1 {
		if d = 2 * d; d >= p.maxBackoff() {
			break
		}
	}
	random := p.random
	if random == nil {
		random = rand.Float64
	}
	d = min(d, p.maxBackoff())
	d -= time.Duration(random() * float64(d) / 2)
	after, ok := p.parseRetryAfter(header.Get("Retry-After"))
	if !ok || after <= d {
		return d, nil
	}
	if after > p.retryAfter() {
		return 0, fmt.Errorf("%w: got %s, want at most %s", ErrRetryAfter, after.Round(time.Second), p.retryAfter())
	}
	// Everybody else was told the same second.
	return after + time.Duration(random()*float64(p.minBackoff())), nil
}

// parseRetryAfter reads both forms of RFC 9110, section 10.2.3.
func (p Policy) parseRetryAfter(value string) (time.Duration, bool) {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0, false
	}
	if strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		const most = int64(1<<63-1) / int64(time.Second)
		if err != nil || seconds > most {
			seconds = most
		}
		return time.Duration(seconds) * time.Second, true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	return at.Sub(p.time()), true
}

// Pause waits for d, as [Policy.Delay] says, after so many failures in a row, the
// last of them err, or until ctx ends.
func (p Policy) Pause(ctx context.Context, failures int, d time.Duration, err error) error {
	if p.Retrying != nil {
		p.Retrying(Retry{Number: failures, Of: p.attempts() - 1, Wait: d, Err: err})
	}
	return p.wait(ctx, d)
}

func (p Policy) wait(ctx context.Context, d time.Duration) error {
	if p.sleep != nil {
		return p.sleep(ctx, d)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func (p Policy) time() time.Time {
	if p.now != nil {
		return p.now()
	}
	return time.Now()
}
