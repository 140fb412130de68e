package registry

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/httprange"
	"github.com/carton-oci/carton-oci/internal/secret"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// The ways in which a registry says no.
var (
	// ErrUnauthorized: the registry wants credentials, or other ones.
	ErrUnauthorized = errors.New("not logged in")
	// ErrDenied: the registry knows who asks, and refuses.
	ErrDenied = errors.New("not allowed")
	// ErrManifest: the registry refuses an image manifest for what it says, most
	// likely for its artifactType or a media type.
	ErrManifest = errors.New("image manifest refused")
	// ErrTooLarge: more than the registry takes. It is a layout.ErrLimit, too, but
	// not the content's fault.
	ErrTooLarge = fmt.Errorf("more than the registry takes: %w", layout.ErrLimit)
	// ErrCredentials: credentials could not be read, stored or removed.
	ErrCredentials = errors.New("credentials are not available")
	// ErrUnsafe: an answer that would send bytes or credentials where they don't
	// belong.
	ErrUnsafe = httprange.Final("unsafe answer of the registry")
)

// maxErrorBytes is how much of an error's body is read.
const maxErrorBytes = 8 << 10

// Error is an answer of a registry, or of its token server, that is not the one
// that was wanted. It wraps the kind that the status stands for:
// [ErrUnauthorized], [ErrDenied], layout.ErrNotFound, [ErrTooLarge] for 413,
// layout.ErrDigest for a digest that the registry refused, [ErrManifest] for an
// image manifest, layout.ErrUnsupported for what it does not delete.
type Error struct {
	// Host is who answered.
	Host string
	// Status is the HTTP status.
	Status int
	// Code is the first code of the distribution specification in the answer,
	// such as "DENIED"; "" where there was none.
	// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#error-codes
	Code string
	// Message is what the answer says for people, as one printable line of at
	// most 200 characters.
	Message string

	token bool // a token server answered
	reads bool // nothing was to be changed
	work  work // that the registry was to do
}

// work is what a registry was asked to do, where that decides what its answer means.
type work int

const (
	storingManifest work = iota + 1
	deleting
)

// Error returns who answered what, the registry's own words in quotes.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s answered %d", e.Host, e.Status)
	if name := http.StatusText(e.Status); name != "" {
		text += " " + name
	}
	if e.Message != "" {
		text += fmt.Sprintf(": %q", e.Message)
	}
	return secret.Strike(text)
}

// Unwrap returns the kind of the error, nil for one that has none.
func (e *Error) Unwrap() error {
	switch {
	case e.work == deleting && e.refuses():
		return layout.ErrUnsupported
	case e.Code == errcode.ErrorCodeDigestInvalid:
		return layout.ErrDigest
	case e.Status == http.StatusUnauthorized:
		return ErrUnauthorized
	case e.Status == http.StatusForbidden:
		return ErrDenied
	case e.Status == http.StatusNotFound:
		return layout.ErrNotFound
	case e.Status == http.StatusRequestEntityTooLarge:
		return ErrTooLarge
	case e.work == storingManifest && e.refuses():
		return ErrManifest
	}
	return nil
}

// Retryable reports whether another attempt may be answered otherwise.
func (e *Error) Retryable() bool { return Policy{}.Retryable(e.Status) }

// refuses reports whether an answer is about what an image manifest says. ECR
// answers 405 UNSUPPORTED, "Invalid JSON syntax", to an artifactType it doesn't
// take (github.com/aws/containers-roadmap/issues/2783); Quay 400 MANIFEST_INVALID
// to the media type of a config; others 415.
//
// A registry that deletes no tags, or nothing, answers 400 or 405, too.
func (e *Error) refuses() bool {
	switch e.Status {
	case http.StatusUnsupportedMediaType, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return e.Code != "TAG_INVALID" && e.Code != errcode.ErrorCodeNameInvalid
	}
	return false
}

// answerError reads what resp, the end of a request to h, says, and closes its
// body.
func (h *endpoint) answerError(resp *http.Response) error { return h.answerErrorOf(resp, 0) }

// answerErrorOf is answerError for the end of certain work.
func (h *endpoint) answerErrorOf(resp *http.Response, of work) error {
	defer resp.Body.Close()
	e := &Error{Status: resp.StatusCode, work: of}
	if resp.Request != nil {
		e.Host = resp.Request.URL.Host
		e.reads = resp.Request.Method == http.MethodGet || resp.Request.Method == http.MethodHead
	}
	b, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBytes)) // what was read is shown
	e.Code, e.Message = readMessage(b, resp.Header.Get("Content-Type"))
	if e.Status == http.StatusBadRequest && speaksTLS(b) {
		return hint.With(e, "%s speaks TLS: leave out %s", e.Host, hint.PlainHTTP)
	}
	return h.advise(e)
}

// readMessage finds the words for people in an error's body: those of the
// distribution specification, of a token server, or plain text.
func readMessage(b []byte, contentType string) (code, message string) {
	var body struct {
		Errors []struct {
			Code    string `json:"code"`
			Message string `json:"message"`
			Detail  any    `json:"detail"`
		} `json:"errors"`
		Error   any `json:"error"`
		Message any `json:"message"`
		Details any `json:"details"`
	}
	if err := json.Unmarshal(b, &body); err != nil {
		if strings.HasPrefix(contentType, "text/plain") {
			return "", errtext.OneLine(string(b))
		}
		return "", ""
	}
	var words []string
	for _, e := range body.Errors {
		if code == "" {
			code = errtext.OneLine(e.Code)
		}
		words = append(words, inWords(e.Code, e.Message)+reason(e.Code, e.Detail))
	}
	for _, v := range []any{body.Error, body.Message, body.Details} {
		if s, ok := v.(string); ok && len(words) == 0 {
			words = append(words, s)
		}
	}
	return code, errtext.OneLine(strings.Join(words, "; "))
}

// inWords joins a code of the distribution specification and its message.
func inWords(code, words string) string {
	code = secret.Strike(code) // in other letters it would not be known
	text := strings.ToLower(strings.ReplaceAll(code, "_", " "))
	if words == "" || strings.EqualFold(words, text) {
		return text
	}
	return text + ": " + words
}

// reason returns what the detail of an error adds to its message. Only of a
// refused image manifest does it: distribution and Artifactory say there what they
// refuse, and in the message no more than that they do.
func reason(code string, detail any) string {
	if code != errcode.ErrorCodeManifestInvalid && code != errcode.ErrorCodeUnsupported {
		return ""
	}
	if fields, ok := detail.(map[string]any); ok {
		detail = cmp.Or(fields["description"], fields["message"])
	}
	if text, ok := detail.(string); ok && text != "" {
		return ": " + text
	}
	return ""
}

// advise adds to an answer what its reader can do about it.
func (h *endpoint) advise(e *Error) error {
	switch {
	case e.Host != h.host && !e.token && e.Status < http.StatusInternalServerError:
		return hint.With(e, "%s redirects to %s; what that answers is the registry's to mend", userHost(h.host), e.Host)
	case e.Status == http.StatusUnauthorized:
		return hint.With(e, "%s %s", hint.Login, userHost(h.host))
	case e.Status == http.StatusForbidden:
		return hint.With(e, "the account may not do this; another one: %s %s", hint.Login, userHost(h.host))
	case e.Status == http.StatusProxyAuthRequired:
		return hint.With(e, "write the proxy's user and password into HTTPS_PROXY")
	case e.Code == errcode.ErrorCodeNameUnknown && !e.reads:
		return hint.With(e, "some registries want a repository to be created before the first push")
	case e.Status == http.StatusRequestEntityTooLarge:
		return hint.With(e, "the registry, or a proxy before it, limits the size of an upload")
	}
	return e
}

// said returns what a header says, for people: a registry may put there what it
// was sent.
func said[T ~string](header T) string { return errtext.OneLine(string(header)) }

// speaksTLS recognises what TLS servers say to plain HTTP: Go's, nginx', Apache's.
func speaksTLS(body []byte) bool {
	m := strings.ToLower(string(body))
	return strings.Contains(m, "http request") && strings.Contains(m, "https")
}
