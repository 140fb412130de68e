package signature

import (
	"errors"
	"fmt"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

// Why a signature does not count. An error of this package about a bundle is an
// [*Error] wrapping one of them; test with errors.Is.
var (
	// ErrNotSigned: there is no signature at all.
	ErrNotSigned = errors.New("is not signed")
	// ErrSigner: signed, and not by whom was asked for.
	ErrSigner = errors.New("is not signed by whom was asked for")
	// ErrModel: a right signature of another model, or of another artifact.
	ErrModel = errors.New("is the signature of something else")
	// ErrPredicate: a right signature of a statement of another kind, such as
	// provenance.
	ErrPredicate = errors.New("is a statement of another kind")
	// ErrExpired: signed with a certificate that is not valid now.
	ErrExpired = errors.New("the certificate is not valid now")
	// ErrKeyless: signed without a key of the signer's; cosign verifies it.
	ErrKeyless = errors.New("is a keyless signature")
	// ErrFormat: the bundle or its statement breaks its specification.
	ErrFormat = errors.New("breaks the format of signatures")
	// ErrLimit: over one of the limits that this package exports.
	ErrLimit = errors.New("over the limit")
)

// Why a key can't be used.
var (
	// ErrKey: it is no key, or none that models are signed with.
	ErrKey = errors.New("is no key that can be used")
	// ErrPassword: the password of a private key is wrong, or was not given.
	ErrPassword = errors.New("wrong password")
)

// Error says what is wrong with a signature.
type Error struct {
	Kind error  // one of the sentinels above
	Msg  string // what was found, and what it should be
	Err  error  // the cause, where another package found it
}

// Error returns "msg: cause" on one line.
func (e *Error) Error() string { return errtext.Line("", e.Msg, e.Kind, e.Err) }

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error { return errtext.Causes(e.Kind, e.Err) }

func errorf(kind error, format string, args ...any) *Error {
	return &Error{Kind: kind, Msg: fmt.Sprintf(format, args...)}
}
