// Package errtext is how the errors of this module read: one line, the object
// first, and nothing in it that could move a terminal's cursor or forge a line of
// a log, and no secret that somebody repeats.
package errtext

import (
	"strings"

	"github.com/carton-oci/carton-oci/internal/secret"
)

// Line returns "object: message: cause", leaving out what is empty. Where there
// is no message, kind's text takes its place. Much of it is what strangers said:
// the secrets that they were sent are struck.
func Line(object, message string, kind, cause error) string {
	var parts []string
	if object != "" {
		parts = append(parts, object)
	}
	if message != "" {
		parts = append(parts, message)
	} else if kind != nil {
		parts = append(parts, kind.Error())
	}
	if cause != nil {
		parts = append(parts, cause.Error())
	}
	return secret.Strike(strings.Join(parts, ": "))
}

// Causes returns what an error with a kind and a cause wraps.
func Causes(kind, cause error) []error {
	if cause == nil {
		return []error{kind}
	}
	return []error{kind, cause}
}

// WithKind returns err, which is kind to errors.Is too. Its text does not change.
func WithKind(err, kind error) error { return &withKind{err, kind} }

type withKind struct{ err, kind error }

func (e *withKind) Error() string   { return e.err.Error() }
func (e *withKind) Unwrap() []error { return []error{e.err, e.kind} }
