package layout

import (
	"errors"
	"fmt"

	"oras.land/oras-go/v2/errdef"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/place"
)

// The kinds of fault that OCI content and its places can have. An error of this
// package that is about content is an [*Error] wrapping one of them; test with
// errors.Is.
var (
	// ErrNotFound: no such reference, manifest or blob. It is oras-go's, so that
	// code around either library tests for one error.
	ErrNotFound = errdef.ErrNotFound
	// ErrUnsupported: the place does not do this, whoever asks. It is oras-go's, too.
	ErrUnsupported = errdef.ErrUnsupported
	// ErrDigest: bytes do not have the digest or size that was promised.
	ErrDigest = errtext.Content("content does not match its digest")
	// ErrFormat: bytes that are no image manifest, tar layer or image layout as
	// specified.
	ErrFormat = errtext.Content("breaks the OCI format")
	// ErrLimit: over one of the limits that this package exports.
	ErrLimit = errtext.Content("over the limit")
	// ErrExist: an output exists and was not to be replaced.
	ErrExist = place.ErrExist
	// ErrTagExists: a tag points to something else and was not to be moved.
	ErrTagExists = errors.New("tag exists already")
)

// Error says what is wrong with which piece of OCI content.
type Error struct {
	// Object is what the fault is in: a digest, a tag, "image manifest", or the
	// name of a tar entry.
	Object string
	// Kind is one of the sentinels above.
	Kind error
	// Msg says what was found, and what was wanted: "got X, want Y".
	Msg string
	// Err is the cause, where another package found it.
	Err error
}

// Error returns "object: msg: cause" on one line, leaving out what is empty.
func (e *Error) Error() string {
	object := e.Object
	if object != "" {
		object = quote(object)
	}
	return errtext.Line(object, e.Msg, e.Kind, e.Err)
}

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error { return errtext.Causes(e.Kind, e.Err) }

func errorf(kind error, object, format string, args ...any) *Error {
	return &Error{Object: object, Kind: kind, Msg: fmt.Sprintf(format, args...)}
}

// quote returns a name from outside as errors show it.
func quote(s string) string { return errtext.Short(s) }
