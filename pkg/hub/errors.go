package hub

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/httprange"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// ErrList: what a hub lists is not what it has, or can't be: other sizes, hashes or
// commits, or an answer that is none.
var ErrList = httprange.Final("the hub's answers don't fit together")

func listf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrList, fmt.Sprintf(format, args...))
}

// ErrGated: a repository whose owner asks for more than an account.
var ErrGated = errtext.WithKind(errors.New("the repository is gated: who reads it must have been granted access"),
	fs.ErrPermission)

// disabled is what the hub says of a repository that it has taken out of service.
const disabled = "Access to this resource is disabled."

func errDisabled() error {
	return errtext.WithKind(errors.New("the hub has disabled the repository"), fs.ErrPermission)
}

// refusal makes an error of an answer that is one, nil where its status says all.
// https://github.com/huggingface/huggingface_hub/blob/v1.0.0/src/huggingface_hub/utils/_http.py
func (c *Client) refusal(resp *http.Response) error {
	if !c.isEndpoint(resp.Request.URL) {
		return nil // storage has no such words
	}
	code, said := resp.Header.Get("X-Error-Code"), resp.Header.Get("X-Error-Message")
	var err error
	switch status := resp.StatusCode; {
	case code == "GatedRepo":
		err = c.hintAccess(ErrGated)
	case status == http.StatusForbidden && said == disabled, code == "DisabledRepo":
		err = errDisabled()
	case status == http.StatusUnavailableForLegalReasons:
		err = errtext.WithKind(errors.New("the hub may not give the repository away, for legal reasons"),
			fs.ErrPermission)
	case code == "RevisionNotFound":
		err = hint.With(errtext.WithKind(errors.New("the repository has no such revision"), fs.ErrNotExist),
			"a revision is a branch, a tag or a commit: hf:ORG/NAME@REV")
	case code == "EntryNotFound":
		err = errtext.WithKind(errors.New("the repository has no such file at this commit"), fs.ErrNotExist)
	case code == "RepoNotFound", status == http.StatusNotFound:
		err = c.hintAccess(errtext.WithKind(errors.New("the hub has no such repository"), fs.ErrNotExist))
	case status == http.StatusUnauthorized && c.authorization == "":
		// The hub does not tell what is missing from what is private.
		err = c.hintAccess(errtext.WithKind(errors.New("the hub has no such repository, or it is private"),
			fs.ErrNotExist))
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		err = c.hintAccess(errtext.WithKind(fmt.Errorf("the hub refuses: %d %s", status, http.StatusText(status)),
			fs.ErrPermission))
	default:
		return nil
	}
	if said = errtext.OneLine(said); said != "" && said != disabled {
		err = &saidError{err, strings.TrimRight(said, ". ")}
	}
	return err
}

// saidError adds the hub's own words.
type saidError struct {
	error
	said string
}

func (e *saidError) Error() string { return e.error.Error() + " (" + e.said + ")" }
func (e *saidError) Unwrap() error { return e.error }

// hintAccess says what to do about a repository that not everybody may read.
func (c *Client) hintAccess(err error) error {
	if c.authorization == "" {
		return hint.With(err, "no token was sent: for a private or gated repository set HF_TOKEN, or run hf auth "+
			"login; check the name's spelling, too")
	}
	if errors.Is(err, ErrGated) {
		return hint.With(err, "ask for access on the repository's page at %s, with the account that the token is of",
			c.endpoint)
	}
	return hint.With(err,
		"check the name's spelling, and that the token in HF_TOKEN, or of hf auth login, may read the repository")
}

// advise adds to the error of a request what says where the hub is, or which limit
// was met.
func (c *Client) advise(err error) error {
	var (
		status  *httprange.StatusError
		op      *net.OpError
		dns     *net.DNSError
		unknown x509.UnknownAuthorityError
	)
	switch {
	case errors.As(err, &status) && status.Code == http.StatusTooManyRequests:
		text := "the hub's limits are counted in five minutes: run it again later"
		if c.authorization == "" {
			text += "; with a token, in HF_TOKEN, they are higher"
		}
		return hint.With(err, "%s", hint.Text(text))
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return hint.With(err, "HTTPS_PROXY or HTTP_PROXY names the proxy: correct it, or unset it where there is none")
	case errors.As(err, &unknown):
		return hint.With(err, "name the authority of the hub, or of the proxy before it, with %s", hint.CAFile)
	case errors.As(err, &dns) && dns.IsNotFound, errors.As(err, &op) && op.Op == "dial":
		return hint.With(err, "HF_ENDPOINT names the hub, huggingface.co where it is not set; where a proxy is "+
			"needed, HTTPS_PROXY names it")
	}
	return err
}
