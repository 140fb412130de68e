package httprange

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"syscall"

	"github.com/carton-oci/carton-oci/internal/ranges"
)

// Final makes a kind of error that no other attempt mends.
func Final(text string) error { return &final{text} }

type final struct{ text string }

func (e *final) Error() string { return e.text }
func (*final) Retryable() bool { return false }

// Transient reports whether an error of a request may pass: everything but
// addresses and redirects that are not allowed, names that don't exist,
// certificates that are not trusted, servers that speak no TLS, and what says of
// itself, by a method Retryable, that it is not. answered says that the host has
// answered before: one that never did and refuses the connection is more likely
// misspelt than restarting. Callers look at their context first.
func Transient(err error, answered bool) bool {
	var (
		own     interface{ Retryable() bool }
		dns     *net.DNSError
		verify  *tls.CertificateVerificationError
		unknown x509.UnknownAuthorityError
		record  tls.RecordHeaderError
		alert   tls.AlertError
	)
	switch {
	case err == nil:
		return false
	case errors.As(err, &own):
		return own.Retryable()
	case errors.As(err, &dns):
		return !dns.IsNotFound
	case errors.Is(err, syscall.ECONNREFUSED):
		return answered
	case errors.Is(err, ranges.ErrNone), errors.Is(err, http.ErrSchemeMismatch):
		return false
	case errors.As(err, &verify), errors.As(err, &unknown), errors.As(err, &record), errors.As(err, &alert):
		return false
	}
	return true
}
