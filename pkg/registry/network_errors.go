package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/httprange"
	"github.com/carton-oci/carton-oci/internal/secret"
	"github.com/carton-oci/carton-oci/internal/stall"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// requestError turns what a client's Do returned for a request to h into an
// error of this package: a token server's answer into an [*Error], and
// everything else into one line without queries and user info, with the hint
// that fits.
func (h *endpoint) requestError(err error) error {
	var (
		answer *errcode.ErrorResponse
		creds  *credentialError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &creds):
		return creds
	case errors.As(err, &answer):
		return h.tokenError(answer)
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return hint.With(&loginError{h.host}, "%s %s", hint.Login, userHost(h.host))
	}
	var (
		request *url.Error
		stalled *stall.Error
	)
	if errors.As(err, &stalled) {
		return secret.Error(stalled) // it names the host, which may be another
	}
	switch {
	case errors.As(err, &request) && request.Op != "parse":
		err = fmt.Errorf("%s: %w", h.host, request.Err)
	case !passes(err):
		// oras-go's judgement of an answer: the same answer gets the same.
		err = fmt.Errorf("%w: %s: %w", ErrUnsafe, h.host, err)
	}
	if dns := (*net.DNSError)(nil); errors.As(err, &dns) && dns.IsNotFound {
		return h.unknownHost(dns, secret.Error(err))
	}
	return adviseNetwork(secret.Error(err))
}

// unknownHostError: a name that DNS does not have.
type unknownHostError struct {
	dns *net.DNSError
	err error
}

func (e *unknownHostError) Error() string {
	text := "there is no host " + errtext.Short(e.dns.Name)
	if e.dns.Server != "" {
		text += ", says the DNS server " + e.dns.Server
	}
	return text
}
func (e *unknownHostError) Unwrap() error { return e.err }

// unknownHost says where a name that DNS does not have comes from: the user's
// reference, the environment, or an answer of the registry.
func (h *endpoint) unknownHost(dns *net.DNSError, err error) error {
	unknown := &unknownHostError{dns, err}
	own := url.URL{Host: h.host}
	connect := (*net.OpError)(nil)
	switch {
	case errors.As(err, &connect) && connect.Op == "proxyconnect":
		return hint.With(unknown, "HTTPS_PROXY or HTTP_PROXY names it: correct it, or unset it where there is no proxy")
	case !strings.EqualFold(strings.TrimSuffix(dns.Name, "."), own.Hostname()):
		return hint.With(fmt.Errorf("%s: %w", h.host, unknown),
			"the registry sends to that host; it is the registry's to mend")
	}
	return hint.With(unknown, "%s stands before the first slash, where the registry's name is: check how it is spelt; "+
		"a file or folder of that name begins with ./, and where a proxy is needed, HTTPS_PROXY names it",
		userHost(h.host))
}

// passes reports whether an error that came with no request, or while an answer was
// read, is the network's.
func passes(err error) bool {
	var (
		op  *net.OpError
		dns *net.DNSError
	)
	return errors.As(err, &op) || errors.As(err, &dns) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, io.EOF) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// loginError: the registry asked for a user name and a password, and there is
// none.
type loginError struct{ host string }

func (e *loginError) Error() string { return e.host + " wants a user name and a password" }
func (*loginError) Unwrap() error   { return ErrUnauthorized }
func (*loginError) Retryable() bool { return false }

// tokenError gives an answer that oras-go has read, a token server's, the form
// of ours.
func (h *endpoint) tokenError(answer *errcode.ErrorResponse) error {
	e := &Error{Status: answer.StatusCode, token: true}
	if answer.URL != nil {
		e.Host = answer.URL.Host
	}
	b, _ := json.Marshal(map[string]any{"errors": answer.Errors}) // as it was before oras-go read it
	e.Code, e.Message = readMessage(b, "")
	return h.advise(e)
}

// adviseNetwork adds what can be done about a connection that did not come
// about.
func adviseNetwork(err error) error {
	var (
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
		name    x509.HostnameError
		record  tls.RecordHeaderError
	)
	switch {
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		return hint.With(err, "the registry speaks no TLS; if that is meant to be so: %s", hint.PlainHTTP)
	case errors.As(err, &unknown):
		return hint.With(err, "name the registry's own authority with %s, or use %s to trust any certificate",
			hint.CAFile, hint.Insecure)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return hint.With(err, "the certificate is out of date, or this machine's clock is wrong")
	case errors.As(err, &name):
		return hint.With(err, "the certificate is another host's; check the registry's name")
	case strings.Contains(err.Error(), http.StatusText(http.StatusProxyAuthRequired)):
		return hint.With(err, "write the proxy's user and password into HTTPS_PROXY")
	}
	return err
}

// transient reports whether an error of a request to h may pass.
func (h *endpoint) transient(err error) bool { return httprange.Transient(err, h.reached.Load()) }

// unsafe makes an ErrUnsafe.
func unsafe(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsafe, errtext.OneLine(fmt.Sprintf(format, args...)))
}
