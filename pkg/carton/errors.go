package carton

import (
	"errors"
	"fmt"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/place"
)

// The kinds of fault that a carton can have. An error of this package that is
// about content is an [*Error] wrapping one of them; test with errors.Is.
// A member, file or folder that does not exist is fs.ErrNotExist.
var (
	// ErrFormat: the bytes break the Carton format or the zip format under it.
	ErrFormat = errtext.Content("breaks the carton format")
	// ErrVersion: a spec_version or LINKS version that this package does not know.
	ErrVersion = errtext.Content("unknown version")
	// ErrChecksum: content does not have the hash or checksum that was promised.
	ErrChecksum = errtext.Content("content does not match its hash")
	// ErrInsecurePath: a name that could reach outside its target, or two names
	// that some file systems take for one.
	ErrInsecurePath = errtext.Content("insecure path")
	// ErrLimit: over one of the limits that this package exports.
	ErrLimit = errtext.Content("over the limit")
	// ErrLink: a link that may not be followed, or that no URL could serve.
	ErrLink = errors.New("link cannot be followed")
	// ErrExist: the output exists and was not to be replaced.
	ErrExist = place.ErrExist
	// ErrBusy: another process is writing the same output.
	ErrBusy = place.ErrBusy
)

// Error says what is wrong with which part of a carton.
type Error struct {
	// Path is the member's path, MANIFEST and LINKS included; "" for the zip or
	// folder as a whole.
	Path string
	// Kind is one of the sentinels above, or fs.ErrNotExist.
	Kind error
	// Msg says what was found and what it should be, after the line where it was
	// found, if any: "line 12: …".
	Msg string
	// Err is the cause, where another package found it.
	Err error
}

// Error returns "path: msg: cause" on one line, leaving out what is empty.
func (e *Error) Error() string {
	return errtext.Line(quotePath(e.Path), e.Msg, e.Kind, e.Err)
}

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error { return errtext.Causes(e.Kind, e.Err) }

func errorf(kind error, path, format string, args ...any) *Error {
	return &Error{Path: path, Kind: kind, Msg: fmt.Sprintf(format, args...)}
}

// quotePath returns path as errors show it.
func quotePath(path string) string { return errtext.Quote(path) }

// of says which member an error without a path is about.
func of(path string, err error) error {
	var e *Error
	if errors.As(err, &e) && e.Path == "" {
		named := *e
		named.Path = path
		return &named
	}
	return err
}
