package errtext

import (
	"errors"
	"fmt"
)

// overLimit is an error about a limit of this program's own.
type overLimit struct {
	kind error
	text string
}

// Limit returns an error that says that content is over a limit of this program's
// own, which breaks no format: another reader may take it. It is kind to errors.Is,
// as such content is not read.
func Limit(kind error, format string, args ...any) error {
	return &overLimit{kind: kind, text: "over a limit of carton-oci: " + fmt.Sprintf(format, args...)}
}

// IsLimit reports whether err is, or wraps, an error of [Limit].
func IsLimit(err error) bool {
	var l *overLimit
	return errors.As(err, &l)
}

func (e *overLimit) Error() string        { return e.text }
func (e *overLimit) Is(target error) bool { return target == e.kind }
