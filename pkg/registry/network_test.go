package registry

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/internal/testenv"
)

// TestGoAway: a server may say after any answer that it wants a new connection.
// Go's server says GOAWAY where a handler closes the connection (RFC 9113,
// section 6.8).
func TestGoAway(t *testing.T) {
	reg := registrytest.New(t, registrytest.Config{TLS: true, HTTP2: true})
	repo := dial(t, reg, "org/m", Options{CAFile: reg.CAFile(t)})
	desc, content := imageManifest(t, describeBytes([]byte("{}")))
	reg.AddManifest("org/m", desc.MediaType, content, "1")
	reg.Break(registrytest.Fault{Times: -1, Effect: func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		w.Header().Set("Connection", "close")
		next.ServeHTTP(w, req)
	}})
	for range 5 {
		got, err := repo.Resolve(t.Context(), "1")
		if err != nil || got.Digest != desc.Digest {
			t.Fatalf("got %v, %v", got, err)
		}
	}
	for _, rec := range reg.Requests() {
		if rec.Proto != "HTTP/2.0" {
			t.Errorf("%s %s came by %s: nothing is checked", rec.Method, rec.Path, rec.Proto)
		}
	}
}

// TestIPv6: a registry may be an address in brackets.
func TestIPv6(t *testing.T) {
	listener, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		testenv.NotChecked(t, "no IPv6 here: %v", err)
	}
	reg := registrytest.New(t, registrytest.Config{})
	desc := reg.AddBlob("org/m", []byte("x"))
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			go forward(in, reg.Host)
		}
	}()
	t.Cleanup(func() { listener.Close() })
	ref, err := ParseReference(listener.Addr().String() + "/org/m:1")
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewClient(Options{PlainHTTP: true, Policy: quick})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	repo, err := c.Repository(ref.Registry, ref.Repository)
	if err != nil {
		t.Fatal(err)
	}
	rc, err := repo.OpenRange(t.Context(), desc, 0, -1)
	if got := readAll(t, rc, err); string(got) != "x" {
		t.Errorf("got %q", got)
	}
}

// forward copies both ways between a connection and a host, until one ends.
func forward(in net.Conn, host string) {
	defer in.Close()
	out, err := net.Dial("tcp", host)
	if err != nil {
		return
	}
	defer out.Close()
	go func() {
		_, _ = out.(*net.TCPConn).ReadFrom(in)
		out.Close()
	}()
	_, _ = in.(*net.TCPConn).ReadFrom(out)
}

// TestExpiredCertificate: one that was good yesterday is refused at once, with
// what to do, and nothing is asked.
func TestExpiredCertificate(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(-24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	authority := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	requests := 0
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests++ }))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s.StartTLS()
	defer s.Close()
	c, err := NewClient(Options{CAFile: authority, Policy: quick})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	repo, err := c.Repository(s.Listener.Addr().String(), "org/m")
	if err != nil {
		t.Fatal(err)
	}
	_, err = repo.Resolve(t.Context(), "1")
	checkError(t, err, nil, "expired", "out of date")
	if requests != 0 {
		t.Errorf("got %d requests", requests)
	}
}
