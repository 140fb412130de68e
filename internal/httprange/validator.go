package httprange

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

// validator is what identifies the content that the first response began.
type validator struct {
	set      bool
	etag     string
	modified string
	encoding string
}

func validatorOf(h http.Header) validator {
	return validator{
		set:      true,
		etag:     h.Get("ETag"),
		modified: h.Get("Last-Modified"),
		encoding: strings.ToLower(strings.Join(h.Values("Content-Encoding"), ",")),
	}
}

// ask makes a range request conditional. Only a strong ETag may stand in
// If-Range (RFC 9110, section 13.1.5).
func (v *validator) ask(req *http.Request) {
	if v.etag != "" && !strings.HasPrefix(v.etag, "W/") {
		req.Header.Set("If-Range", v.etag)
	}
}

// check compares a response with the first one. Bytes of two encodings never
// fit together; another ETag or date is a fault only where the content is
// pinned: a caller with a hash need not care which of a host's servers answers.
func (v *validator) check(h http.Header, pinned bool) error {
	now := validatorOf(h)
	if !v.set {
		*v = now
		return nil
	}
	if now.encoding != v.encoding {
		return fmt.Errorf("%w: got Content-Encoding %q, want %q", ErrChanged, errtext.OneLine(now.encoding),
			errtext.OneLine(v.encoding))
	}
	if !pinned {
		return nil
	}
	if now.etag != "" && v.etag != "" && strings.TrimPrefix(now.etag, "W/") != strings.TrimPrefix(v.etag, "W/") {
		return fmt.Errorf("%w: got ETag %s, want %s", ErrChanged, errtext.OneLine(now.etag), errtext.OneLine(v.etag))
	}
	if now.modified != "" && v.modified != "" && now.modified != v.modified {
		return fmt.Errorf("%w: got Last-Modified %s, want %s", ErrChanged, errtext.OneLine(now.modified),
			errtext.OneLine(v.modified))
	}
	return nil
}
