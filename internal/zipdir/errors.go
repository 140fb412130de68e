package zipdir

import (
	"errors"
	"fmt"
	"io"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

// The kinds of fault that a zip can have. Any other error is the source's, or of
// [Options] Name.
var (
	// ErrFormat: the bytes are no zip that this package reads.
	ErrFormat = errors.New("breaks the zip format")
	// ErrLimit: the zip is over a limit of [Options].
	ErrLimit = errors.New("over the limit")
)

// Error says what is wrong with which entry.
type Error struct {
	// Name is the entry's, "" for the zip as a whole.
	Name string
	// Kind is ErrFormat or ErrLimit.
	Kind error
	// Msg says what was found and what was wanted.
	Msg string
}

// Error returns "name: msg" on one line.
func (e *Error) Error() string { return errtext.Line(errtext.Quote(e.Name), e.Msg, e.Kind, nil) }

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }

func errorf(format string, args ...any) error {
	return &Error{Kind: ErrFormat, Msg: fmt.Sprintf(format, args...)}
}

func limitf(format string, args ...any) error {
	return &Error{Kind: ErrLimit, Msg: fmt.Sprintf(format, args...)}
}

// of says which entry an error without a name is of.
func of(name string, err error) error {
	var e *Error
	if errors.As(err, &e) && e.Name == "" {
		return &Error{Name: name, Kind: e.Kind, Msg: e.Msg}
	}
	return err
}

// cutShort makes the end of the source in the middle of the directory ErrFormat.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errorf("the central directory ends inside")
	}
	return err
}
