// Package hint attaches to an error what its reader can do about it.
//
// An error's text says what happened, to what, and what was expected. What to
// do next is a sentence of its own, which the command prints on a line that
// begins with "hint:"; it never gets into the error's text, so that wrapped
// errors stay one line.
//
// A hint calls options and functions by their names in the library ([Name]). A
// program whose users know them by other names, as the flags of a command, shows
// the hint with those ([Hint.Text]).
//
// A hint is there to be copied into a shell, and much of what it names was named
// by strangers: members, hosts, tags. Every argument is therefore quoted for a
// shell where it needs to be; only [Text] and [Name], words of our own, are not.
package hint

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Hint is a sentence about what can be done.
type Hint struct {
	format string
	args   []any
}

// String returns the sentence, with the library's names.
func (h Hint) String() string { return h.Text(nil) }

// Text returns the sentence with these names in the place of the library's.
func (h Hint) Text(names map[Name]string) string {
	words := make([]any, len(h.args))
	for i, arg := range h.args {
		if name, ok := arg.(Name); ok {
			arg = Text(cmp.Or(names[name], string(name)))
		}
		words[i] = shell(arg)
	}
	return fmt.Sprintf(h.format, words...)
}

// Names returns the options and functions that the hint is about.
func (h Hint) Names() []Name {
	var names []Name
	for _, arg := range h.args {
		if name, ok := arg.(Name); ok {
			names = append(names, name)
		}
	}
	return names
}

type hinted struct {
	err  error
	hint Hint
}

func (h *hinted) Error() string { return h.err.Error() }
func (h *hinted) Unwrap() error { return h.err }

// New makes a hint, as With does, for what is no error.
func New(format string, args ...any) Hint { return Hint{format, args} }

// With returns err carrying one hint more. The text of err does not change.
// Arguments are quoted for a shell. With of a nil error is nil.
func With(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &hinted{err, New(format, args...)}
}

// Add returns err carrying these hints too, before its own.
func Add(err error, hints ...Hint) error {
	for _, h := range slices.Backward(hints) {
		err = &hinted{err, h}
	}
	return err
}

// Of returns the hints that err and the errors it wraps carry, outermost
// first.
func Of(err error) []Hint {
	var hints []Hint
	for err != nil {
		var h *hinted
		if !errors.As(err, &h) {
			break
		}
		hints = append(hints, h.hint)
		err = h.err
	}
	return hints
}

// OfArgs returns the hints of errors among the arguments of a format that gives
// their text alone.
func OfArgs(args []any) []Hint {
	var hints []Hint
	for _, a := range args {
		if err, ok := a.(error); ok {
			hints = append(hints, Of(err)...)
		}
	}
	return hints
}
