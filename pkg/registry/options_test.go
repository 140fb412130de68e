package registry

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/httprange"
	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// TestClientOptions: an embedder's client and its wrapper carry everything.
func TestClientOptions(t *testing.T) {
	reg := registrytest.New(t, registrytest.Config{TLS: true})
	var base, wrapped atomic.Int32
	pool := x509.NewCertPool()
	pem, _ := os.ReadFile(reg.CAFile(t))
	pool.AppendCertsFromPEM(pem)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	t.Cleanup(transport.CloseIdleConnections)
	repo := dial(t, reg, "org/m", Options{
		HTTPClient: &http.Client{Transport: counting{transport, &base}, Timeout: time.Minute},
		Wrap:       func(rt http.RoundTripper) http.RoundTripper { return counting{rt, &wrapped} },
		UserAgent:  "tester/1",
	})
	b := random(1, 1000)
	if err := repo.Push(t.Context(), layer(describeBytes(b), opener(b)), layout.Watch{}); err != nil {
		t.Fatal(err)
	}
	rc, err := repo.OpenRange(t.Context(), describeBytes(b), 0, -1)
	if got := readAll(t, rc, err); !bytes.Equal(got, b) {
		t.Error("the blob comes back different")
	}
	n := int32(len(reg.Requests()))
	if n == 0 || base.Load() != n || wrapped.Load() != n {
		t.Errorf("%d requests arrived, %d through the client, %d through the wrapper", n, base.Load(), wrapped.Load())
	}
	for _, rec := range reg.Requests() {
		if got := rec.Header.Get("User-Agent"); got != "tester/1" {
			t.Errorf("%s %s: User-Agent is %q", rec.Method, rec.Path, got)
		}
	}
}

type counting struct {
	http.RoundTripper
	n *atomic.Int32
}

func (c counting) RoundTrip(req *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.RoundTripper.RoundTrip(req)
}

func TestClientOptionsRefused(t *testing.T) {
	dir := t.TempDir()
	junk := filepath.Join(dir, "junk.pem")
	if err := os.WriteFile(junk, []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		opts Options
		says string
	}{
		{Options{CAFile: filepath.Join(dir, "none")}, "no such file"},
		{Options{CAFile: junk}, "want PEM"},
		{Options{CertFile: junk}, "junk.pem"},
		{Options{KeyFile: junk}, "no certificate file"},
		{Options{CertFile: filepath.Join(dir, "none"), KeyFile: junk}, "no such file"},
	} {
		_, err := NewClient(tt.opts)
		checkError(t, err, nil, tt.says, "")
	}
	c, err := NewClient(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Repository("ghcr.io", "Org/m"); err == nil {
		t.Error("Repository accepted upper case")
	}
}

// TestClientCertificate: a registry that wants one gets it, and one that wants
// it in vain is not taken for one without TLS.
func TestClientCertificate(t *testing.T) {
	certFile, pool := clientCertificate(t)
	reg := registrytest.New(t, registrytest.Config{TLS: true, ClientCAs: pool})
	desc := reg.AddBlob("m", []byte("x"))
	try := func(opts Options) error {
		opts.Insecure = true
		_, err := dial(t, reg, "m", opts).Stat(t.Context(), desc.Digest)
		return err
	}
	if err := try(Options{CertFile: certFile}); err != nil {
		t.Error(err)
	}
	checkError(t, try(Options{}), nil, "certificate required", "")
}

func clientCertificate(t *testing.T) (file string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "client"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	b := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	b = append(b, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})...)
	file = filepath.Join(t.TempDir(), "client.pem")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(cert)
	return file, pool
}

// TestProxy: a registry that no name server knows is reached through a proxy,
// and a proxy's refusal says so.
func TestProxy(t *testing.T) {
	reg := registrytest.New(t, registrytest.Config{})
	desc := reg.AddBlob("org/m", []byte("x"))
	status := 0
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if status != 0 {
			w.WriteHeader(status)
			return
		}
		target, _ := url.Parse(reg.URL + req.URL.RequestURI())
		out := req.Clone(req.Context())
		out.URL, out.RequestURI, out.Host = target, "", target.Host
		resp, err := http.DefaultTransport.RoundTrip(out)
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		for k, v := range resp.Header {
			w.Header()[k] = v
		}
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	}))
	defer proxy.Close()
	address, _ := url.Parse(proxy.URL)
	transport := &http.Transport{Proxy: http.ProxyURL(address)}
	defer transport.CloseIdleConnections()
	c, err := NewClient(Options{PlainHTTP: true, HTTPClient: &http.Client{Transport: transport}, Policy: quick})
	if err != nil {
		t.Fatal(err)
	}
	repo, err := c.Repository("registry.invalid", "org/m")
	if err != nil {
		t.Fatal(err)
	}
	rc, err := repo.OpenRange(t.Context(), desc, 0, -1)
	if got := readAll(t, rc, err); string(got) != "x" {
		t.Errorf("got %q", got)
	}
	status = http.StatusProxyAuthRequired
	_, err = repo.OpenRange(t.Context(), desc, 0, -1)
	checkError(t, err, nil, "407 Proxy Authentication Required", "HTTPS_PROXY")
}

// TestTransportsUseEnvironment: this package's own transports ask the
// environment for a proxy.
func TestTransportsUseEnvironment(t *testing.T) {
	transports := 0
	wrap := func(rt http.RoundTripper) http.RoundTripper {
		tr := rt.(*http.Transport)
		if tr.Proxy == nil {
			t.Error("a transport knows no proxy")
		}
		if tr.TLSClientConfig.InsecureSkipVerify {
			t.Error("certificates are not verified")
		}
		if tr.ResponseHeaderTimeout != 0 {
			t.Error("a registry that takes its time to finish an upload is cut off")
		}
		transports++
		return rt
	}
	if _, err := NewClient(Options{Wrap: wrap}); err != nil || transports < 2 {
		t.Errorf("got %d transports, %v", transports, err)
	}
}

// TestUnknownHosts: of a name that DNS does not have it is said who wrote it.
func TestUnknownHosts(t *testing.T) {
	for name, tt := range map[string]struct {
		host      string // that is not known
		op        string
		err, hint string
	}{
		"the registry's":    {"ghcr.oi", "dial", "there is no host ghcr.oi, says the DNS server 10.0.0.1:53", "check how it is spelt"},
		"with a dot":        {"ghcr.oi.", "dial", "there is no host ghcr.oi.", "check how it is spelt"},
		"the proxy's":       {"prxy.example", "proxyconnect", "there is no host prxy.example", "HTTPS_PROXY or HTTP_PROXY names it"},
		"another":           {"tokens.example", "dial", "ghcr.oi:443: there is no host tokens.example", "the registry sends to that host"},
		"one that is a lie": {"a\x1b[2J", "dial", `there is no host "a\x1b[2J"`, "the registry sends"},
	} {
		t.Run(name, func(t *testing.T) {
			cause := &net.OpError{Op: tt.op, Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: tt.host, Server: "10.0.0.1:53", IsNotFound: true}}
			err := (&endpoint{host: "ghcr.oi:443"}).requestError(&url.Error{Op: "Get", URL: "https://ghcr.oi/?secret", Err: cause})
			checkError(t, err, cause, tt.err, tt.hint)
			if httprange.Transient(err, true) {
				t.Errorf("%v is taken for transient", err)
			}
		})
	}
}

// TestCertificateHints: what is wrong with a certificate or a name is said, and
// does not pass.
func TestCertificateHints(t *testing.T) {
	for _, tt := range []struct {
		err  error
		hint string
	}{
		{&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired, Cert: &x509.Certificate{}}}, "out of date"},
		{&tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{}, Host: "x"}}, "another host's"},
	} {
		err := (&endpoint{host: "ghcr.io"}).requestError(&url.Error{Op: "Get", URL: "https://ghcr.io/?secret", Err: tt.err})
		checkError(t, err, tt.err, "ghcr.io: ", tt.hint)
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%v shows the query", err)
		}
		if httprange.Transient(err, true) {
			t.Errorf("%v is taken for transient", err)
		}
	}
}

// TestWebClient: addresses that are no registry's get no credentials.
func TestWebClient(t *testing.T) {
	reg := registrytest.New(t, registrytest.Config{TLS: true, Auth: registrytest.Auth{Users: twoUsers}})
	plain := registrytest.New(t, registrytest.Config{})
	c, err := NewClient(Options{CAFile: reg.CAFile(t), Credential: static("u", "p")})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	resp, err := c.WebClient().Get(reg.URL + "/v2/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized || reg.Requests()[0].Header.Get("Authorization") != "" {
		t.Errorf("got %d for %v", resp.StatusCode, reg.Requests()[0].Header)
	}
	reg.Break(registrytest.Fault{Effect: registrytest.Answer(302, "", "Location", plain.URL)})
	resp, err = c.WebClient().Get(reg.URL + "/v2/")
	if err == nil {
		resp.Body.Close()
	}
	checkError(t, err, ErrUnsafe, "from https to http", "")
	if c.RootCAs() == nil {
		t.Error("the authority is not known")
	}
	none, err := NewClient(Options{})
	if err != nil || none.RootCAs() != nil {
		t.Errorf("without a file: got %v, %v", none.RootCAs(), err)
	}
}
