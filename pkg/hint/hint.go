// Package hint attaches to an error what its reader can do about it.
//
// An error's text says what happened, to what, and what was expected. What to
// do next is a sentence of its own, which the command prints on a line that
// begins with "hint:"; it never gets into the error's text, so that wrapped
// errors stay one line.
//
// A hint is there to be copied into a shell, and much of what it names was named
// by strangers: members, hosts, tags. Every argument is therefore quoted for a
// shell where it needs to be; only [Text], words of our own, is not.
package hint

import (
	"errors"
	"fmt"
)

type hinted struct {
	err  error
	text string
}

func (h *hinted) Error() string { return h.err.Error() }
func (h *hinted) Unwrap() error { return h.err }

// With returns err carrying one hint more. The text of err does not change.
// Arguments are quoted for a shell. With of a nil error is nil.
func With(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	words := make([]any, len(args))
	for i, arg := range args {
		words[i] = shell(arg)
	}
	return &hinted{err: err, text: fmt.Sprintf(format, words...)}
}

// Of returns the hints that err and the errors it wraps carry, outermost
// first.
func Of(err error) []string {
	var hints []string
	for err != nil {
		var h *hinted
		if !errors.As(err, &h) {
			break
		}
		hints = append(hints, h.text)
		err = h.err
	}
	return hints
}
