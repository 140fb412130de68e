package links

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/httprange"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// candidates is what is known of the URLs of one content.
type candidates struct {
	urls  []string  // to ask, best first
	wrong []failure // those that gave wrong content
	whole bool      // content put together from several URLs was wrong once
}

// candidates returns what is known of a content's URLs. The caller holds s.mu.
func (s *resolved) candidates(hash string) *candidates {
	p := s.known[hash]
	if p == nil {
		p = &candidates{urls: slices.Clone(s.links.URLs[hash])}
		s.known[hash] = p
	}
	return p
}

// urls returns the URLs that may be asked for a content, best first.
func (s *resolved) urls(hash string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.candidates(hash).urls)
}

// failed puts a URL that could not be read behind the others.
func (s *resolved) failed(hash, u string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.candidates(hash)
	if i := slices.Index(p.urls, u); i >= 0 {
		p.urls = append(slices.Delete(p.urls, i, i+1), u)
	}
}

// wrong notes that the bytes of these URLs, put together, were not the content.
// One is not asked again. Of several, nobody knows whose were wrong: from now on
// each has to give the whole, the last one first, because the one before it
// failed besides. It returns how many are left.
func (s *resolved) wrong(hash string, from []string, err error) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.candidates(hash)
	if len(from) == 1 {
		p.urls = slices.DeleteFunc(p.urls, func(u string) bool { return u == from[0] })
		p.wrong = append(p.wrong, failure{from[0], err})
		return len(p.urls)
	}
	p.whole = true
	return len(p.urls)
}

// onlyWhole reports whether a content may no longer be put together from
// several URLs.
func (s *resolved) onlyWhole(hash string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.candidates(hash).whole
}

// failure is why one URL did not give a content.
type failure struct {
	url string
	err error
}

// failures is why no URL did.
type failures []failure

// Error names the first three hosts with their reasons.
func (f failures) Error() string {
	const most = 3
	var parts []string
	for _, one := range f[:min(len(f), most)] {
		parts = append(parts, one.Error())
	}
	if len(f) > most {
		parts = append(parts, fmt.Sprintf("and %d more", len(f)-most))
	}
	return strings.Join(parts, "; ")
}

// Unwrap returns the reasons.
func (f failures) Unwrap() []error {
	errs := make([]error, len(f))
	for i := range f {
		errs[i] = f[i].err
	}
	return errs
}

// Error returns the host and the reason; never more of the URL, which may hold
// what should not be seen.
func (f failure) Error() string {
	host := "a link"
	if u, err := url.Parse(f.url); err == nil && u.Host != "" {
		host = errtext.OneLine(u.Host)
	}
	return host + ": " + f.reason()
}

// reason returns the text of the error without what was said before: the URL
// and the member's path.
func (f failure) reason() string {
	var get *httprange.Error
	if errors.As(f.err, &get) {
		return get.Err.Error()
	}
	own, ok := f.err.(*carton.Error) //nolint:errorlint // one further in is not all that was said
	switch {
	case !ok:
		return f.err.Error()
	case own.Msg == "" && own.Err != nil:
		return own.Err.Error()
	}
	return (&carton.Error{Kind: own.Kind, Msg: own.Msg, Err: own.Err}).Error()
}

// temporaryError is an error after which another attempt may do better.
type temporaryError struct{ error }

func (e temporaryError) Unwrap() error { return e.error }

// Temporary returns true.
func (temporaryError) Temporary() bool { return true }

// isEnd reports whether a range ended because its content did.
func isEnd(err error) bool {
	return err == io.EOF || err == io.ErrUnexpectedEOF //nolint:errorlint // fetchers return both bare
}
