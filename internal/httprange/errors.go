package httprange

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/secret"
)

// The kinds of fault that a transfer can have beside those of the network.
var (
	// ErrAnswer: a response that does not fit the request, or a size that is not
	// the expected one.
	ErrAnswer = Final("unusable answer")
	// ErrChanged: the content is not what an earlier response began.
	ErrChanged = Final("content has changed since it was opened")
	// ErrNotAllowed: an address, redirect or URL that the guard refuses.
	ErrNotAllowed = Final("not allowed")
)

// Error says which URL could not be read.
type Error struct {
	// URL is the first URL asked for, without user info and query.
	URL string
	// Err is the reason; its text does not repeat the URL.
	Err error
}

// Error returns "get URL: reason".
func (e *Error) Error() string { return "get " + e.URL + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// NotAllowedError is a host that would be reached if it were allowed by name
// ([ClientOptions] Allow). It wraps ErrNotAllowed.
type NotAllowedError struct {
	// Host is what the URL says, with its port where it says one.
	Host string
	// Err is why it is refused.
	Err error
}

// Error returns why the host is refused.
func (e *NotAllowedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *NotAllowedError) Unwrap() error { return e.Err }

// StatusError is a response whose status is an error.
type StatusError struct {
	// Code is the status.
	Code int
	// Text is the beginning of the body where that was meant for people, as one
	// printable line.
	Text string
}

// Error returns the status, and the server's words where it had some.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("%d %s", e.Code, http.StatusText(e.Code))
	if http.StatusText(e.Code) == "" {
		text = fmt.Sprintf("status %d", e.Code)
	}
	if e.Text != "" {
		text += ": " + e.Text
	}
	return text
}

// Retryable reports whether the status is a retryable one.
func (e *StatusError) Retryable() bool { return Policy{}.Retryable(e.Code) }

// maxErrorBody is how many bytes of an error's body are read.
const maxErrorBody = 4 << 10

// newStatusError reads what resp's body says for people: plain text or JSON.
func newStatusError(resp *http.Response) *StatusError {
	e := &StatusError{Code: resp.StatusCode}
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || kind != "text/plain" && kind != "application/json" {
		return e
	}
	b, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // what was read is shown
	e.Text = errtext.OneLine(string(b))
	return e
}

// withoutURL takes the URL that net/http puts before its errors off err's text,
// and what is private out of every other.
func withoutURL(err error) error {
	if e, ok := err.(*url.Error); ok { //nolint:errorlint // only the outermost has nothing around it
		return withoutURL(e.Err)
	}
	return secret.Error(err)
}
