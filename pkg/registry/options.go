package registry

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"time"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/carton-oci/carton-oci/internal/httprange"
	"github.com/carton-oci/carton-oci/internal/localfile"
	"github.com/carton-oci/carton-oci/internal/stall"
)

// Policy says how long and how often to try; its zero value is the default.
type Policy = httprange.Policy

// Retry is a wait for another attempt, which Policy.Retrying is told of.
type Retry = httprange.Retry

// DefaultAttempts is how many requests in a row may fail unless a Policy says.
const DefaultAttempts = httprange.DefaultAttempts

// What the errors of requests may wrap, beside the ways in which a registry says no.
var (
	// ErrGaveUp: it failed so often in a row that it is not tried again.
	ErrGaveUp = httprange.ErrGaveUp
	// ErrStalled: the registry sent or took nothing, or too little, for too long.
	ErrStalled = stall.ErrStalled
)

// Options say how registries are reached. The zero value is anonymous access
// over TLS, as the environment's proxy variables say.
type Options struct {
	// HTTPClient, where it is set, gives the transport for everything, in place
	// of the two that this package makes; Proxy, CAFile, CertFile, KeyFile and
	// Insecure are then its own business. Its Timeout covers metadata only: a
	// blob takes as long as it takes.
	HTTPClient *http.Client
	// Credential finds the credentials of a host; nil is anonymous.
	// [Credentials.Credential] is the one that reads Docker's files.
	Credential auth.CredentialFunc
	// PlainHTTP reaches registries without TLS. Without it a loopback host is
	// tried with TLS first, then without, and any other with TLS only.
	PlainHTTP bool
	// Insecure trusts any certificate.
	Insecure bool
	// CAFile is a PEM file of authorities to trust besides the system's.
	CAFile string
	// CertFile and KeyFile are PEM files of the client's certificate. CertFile
	// alone may hold both.
	CertFile, KeyFile string
	// UserAgent is how the client calls itself; "" is "carton-oci".
	UserAgent string
	// Policy says how long and how often to try.
	Policy Policy
	// ChunkSize, where it is over 0, sends larger blobs in chunks of so many bytes,
	// but to registries that are known to take none. 0 sends a blob in one request
	// wherever the registry takes that.
	ChunkSize int64
	// StateDir is a folder that remembers uploads under way, in a folder "uploads"
	// of its own, so that a later run goes on where this one was ended; "" remembers
	// none.
	StateDir string
	// Wrap, where it is set, is put around each transport: to log, to count.
	Wrap func(http.RoundTripper) http.RoundTripper
}

const (
	pingTimeout = 15 * time.Second
	readBuffer  = 256 << 10 // bytes read at once; 4 KiB is Go's default, and slow
	// writeBuffer is bytes written at once: what a slow line takes within the stall
	// time must be more.
	writeBuffer = 64 << 10
)

// stall returns how long a server may send or take nothing.
func (o Options) stall() time.Duration {
	if o.Policy.Stall > 0 {
		return o.Policy.Stall
	}
	return stall.DefaultLimit
}

// maxPEMBytes is the largest file of certificates; all authorities of a system are
// some 200 kB.
const maxPEMBytes = 16 << 20

func (o Options) tlsConfig() (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	conf.InsecureSkipVerify = o.Insecure //nolint:gosec // only where the user asks for it
	if o.CAFile != "" {
		pem, err := localfile.Read(o.CAFile, maxPEMBytes)
		if err != nil {
			return nil, fmt.Errorf("read authorities: %w", err)
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read authorities: %s: got no certificate, want PEM", o.CAFile)
		}
		conf.RootCAs = pool
	}
	if o.CertFile == "" && o.KeyFile == "" {
		return conf, nil
	}
	cert, key := o.CertFile, o.KeyFile
	if cert == "" {
		return nil, fmt.Errorf("read client certificate: got the key file %s and no certificate file", key)
	}
	if key == "" {
		key = cert
	}
	certPEM, err := localfile.Read(cert, maxPEMBytes)
	if err != nil {
		return nil, fmt.Errorf("read client certificate: %w", err)
	}
	keyPEM := certPEM
	if key != cert { // what a shell hands over can be read once
		if keyPEM, err = localfile.Read(key, maxPEMBytes); err != nil {
			return nil, fmt.Errorf("read client certificate: %w", err)
		}
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("read client certificate %s: %w", cert, err)
	}
	conf.Certificates = []tls.Certificate{pair}
	return conf, nil
}
