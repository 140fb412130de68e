package stall

import (
	"errors"
	"fmt"
	"time"
)

// ErrStalled: the other side sent or took nothing, or too little, for too long.
// Every [Error] is one.
var ErrStalled = errors.New("stalled")

// Error says of an exchange what was waited for in vain.
type Error struct {
	// Host is who was waited for, as the URL names it; Method the request's.
	Host, Method string
	// Got is how many bytes moved within Limit, which was too long to wait.
	Got   int64
	Limit time.Duration

	phase phase
}

// Commit reports whether all of a PUT or PATCH had gone out, and its answer was
// waited for.
func (e *Error) Commit() bool { return e.phase == commit }

// Error names the host and what was waited for.
func (e *Error) Error() string {
	want := ""
	if e.Got > 0 {
		want = fmt.Sprintf(", want at least %d", least(e.Limit))
	}
	switch e.phase {
	case sending:
		return fmt.Sprintf("%s has stalled: it took %d bytes of a %s in %s%s", e.Host, e.Got, e.Method, e.Limit, want)
	case body:
		return fmt.Sprintf("%s has stalled: got %d bytes of its answer to %s in %s%s", e.Host, e.Got, e.Method, e.Limit,
			want)
	}
	return fmt.Sprintf("%s has stalled: no answer to %s within %s", e.Host, e.Method, e.Limit)
}

// Is says that e is an [ErrStalled].
func (*Error) Is(target error) bool { return target == ErrStalled }
