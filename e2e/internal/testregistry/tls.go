package testregistry

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// serverTLS makes an authority and its certificates, for the server and for a
// client, and writes what a client needs into files.
func (s *Server) serverTLS(t testing.TB, clientCert bool) *tls.Config {
	t.Helper()
	ca := newAuthority(t)
	dir := t.TempDir()
	s.CAFile = writePEM(t, filepath.Join(dir, "ca.pem"), "CERTIFICATE", ca.cert.Raw)
	client := ca.issue(t, x509.ExtKeyUsageClientAuth)
	s.CertFile = writePEM(t, filepath.Join(dir, "client.pem"), "CERTIFICATE", client.Certificate[0])
	key, err := x509.MarshalPKCS8PrivateKey(client.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	s.KeyFile = writePEM(t, filepath.Join(dir, "client.key"), "PRIVATE KEY", key)

	s.pool = x509.NewCertPool()
	s.pool.AddCert(ca.cert)
	config := &tls.Config{Certificates: []tls.Certificate{ca.issue(t, x509.ExtKeyUsageServerAuth)}}
	if clientCert {
		config.ClientAuth = tls.RequireAndVerifyClientCert
		config.ClientCAs = s.pool
	}
	return config
}

// authority issues certificates that nobody else trusts.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "authority of a test"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert: cert, key: key}
}

// TLSFor returns a configuration to serve TLS under names with, and the file of
// the authority that vouches for them.
func TLSFor(t testing.TB, names ...string) (config *tls.Config, caFile string) {
	t.Helper()
	ca := newAuthority(t)
	config = &tls.Config{Certificates: []tls.Certificate{ca.issue(t, x509.ExtKeyUsageServerAuth, names...)}}
	return config, writePEM(t, filepath.Join(t.TempDir(), "ca.pem"), "CERTIFICATE", ca.cert.Raw)
}

// issue returns a certificate for this machine's loopback names, and for others.
func (a *authority) issue(t testing.TB, usage x509.ExtKeyUsage, names ...string) tls.Certificate {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: "localhost"},
		NotBefore:    a.cert.NotBefore,
		NotAfter:     a.cert.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{usage},
		DNSNames:     append(names, "localhost"),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func writePEM(t testing.TB, name, block string, der []byte) string {
	t.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: block, Bytes: der})
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// quiet keeps handshakes that a test makes fail out of its output.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
