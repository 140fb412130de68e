// Package registrytest is a small OCI registry for tests: correct where it is
// left alone, wrong in the ways that real ones are where it is told to be, and
// counting every request and byte.
//
// It keeps what it is sent in files, so that large blobs cost no memory. It
// implements the whole of pushing and pulling of
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md
// The lists of referrers, which many registries lack, are a quirk.
package registrytest

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
)

// Config says what kind of registry it is. The zero value is a plain HTTP one
// that keeps to the specification and lets anybody do anything.
type Config struct {
	// TLS serves https; CAFile writes the authority to trust.
	TLS bool
	// HTTP2 offers HTTP/2 over TLS.
	HTTP2 bool
	// ClientCAs, where it is set, wants a certificate of the client, signed by one
	// of them.
	ClientCAs *x509.CertPool
	// Auth says who may do what.
	Auth Auth
	// Quirks are its deviations.
	Quirks Quirks
}

// Registry is a running registry. It stops when its test does.
type Registry struct {
	// Host is its host and port, URL the same with the scheme.
	Host, URL string

	conf   Config
	dir    string
	server *httptest.Server
	cdn    *httptest.Server
	done   chan struct{} // closed when the test ends

	mu        sync.Mutex
	blobs     map[string]map[digest.Digest]string // repository → digest → file
	manifests map[string]map[digest.Digest]manifest
	tags      map[string]map[string]digest.Digest
	uploads   map[string]*upload
	tokens    map[string]*token
	presigned map[string]digest.Digest
	records   []*Record
	faults    []*Fault
	serial    int
}

// New starts a registry.
func New(t testing.TB, conf Config) *Registry {
	t.Helper()
	r := &Registry{
		conf:      conf,
		dir:       t.TempDir(),
		done:      make(chan struct{}),
		blobs:     make(map[string]map[digest.Digest]string),
		manifests: make(map[string]map[digest.Digest]manifest),
		tags:      make(map[string]map[string]digest.Digest),
		uploads:   make(map[string]*upload),
		tokens:    make(map[string]*token),
		presigned: make(map[string]digest.Digest),
	}
	if conf.Quirks.CDN {
		r.cdn = r.start(r.unstarted(http.HandlerFunc(r.serveCDN)))
	}
	// A client of another test may ask at once, for a port that was somebody else's.
	r.server = r.unstarted(http.HandlerFunc(r.serve))
	r.Host = r.server.Listener.Addr().String()
	r.URL = "http://" + r.Host
	if conf.TLS {
		r.URL = "https://" + r.Host
	}
	r.start(r.server)
	t.Cleanup(func() {
		close(r.done)
		for _, s := range []*httptest.Server{r.server, r.cdn} {
			if s != nil {
				s.CloseClientConnections()
				s.Close()
			}
		}
	})
	return r
}

// unstarted returns a server that listens, and does not answer yet.
func (r *Registry) unstarted(h http.Handler) *httptest.Server {
	s := httptest.NewUnstartedServer(r.record(h))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // broken handshakes are part of the tests
	s.EnableHTTP2 = r.conf.HTTP2
	if r.conf.ClientCAs != nil {
		s.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: r.conf.ClientCAs}
	}
	return s
}

func (r *Registry) start(s *httptest.Server) *httptest.Server {
	if r.conf.TLS {
		s.StartTLS()
	} else {
		s.Start()
	}
	return s
}

// CAFile writes the certificate that the registry's is signed with, and returns
// the file's name.
func (r *Registry) CAFile(t testing.TB) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "ca.pem")
	b := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.server.Certificate().Raw})
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// serve routes a request.
func (r *Registry) serve(w http.ResponseWriter, req *http.Request) {
	if req.URL.Path == "/token" {
		r.serveToken(w, req)
		return
	}
	rest, ok := strings.CutPrefix(req.URL.Path, "/v2/")
	if !ok {
		http.NotFound(w, req)
		return
	}
	repo, kind, name := split(rest)
	if !r.allow(w, req, repo) {
		return
	}
	switch kind {
	case "":
		w.WriteHeader(http.StatusOK)
	case "blobs":
		r.serveBlob(w, req, repo, name)
	case "uploads":
		r.serveUpload(w, req, repo, name)
	case "manifests":
		r.serveManifest(w, req, repo, name)
	case "tags":
		r.serveTags(w, req, repo)
	case "referrers":
		r.serveReferrers(w, req, repo, name)
	default:
		fail(w, http.StatusNotFound, "NAME_UNKNOWN", "no such path")
	}
}

// split cuts "org/model/manifests/1" into its parts. The kind of what is none
// is "", that of what is not known "?".
func split(path string) (repo, kind, name string) {
	if path == "" {
		return "", "", ""
	}
	for _, k := range []string{"/blobs/uploads/", "/blobs/", "/manifests/", "/tags/", "/referrers/"} {
		if i := strings.LastIndex(path, k); i > 0 {
			kind := strings.Trim(k, "/")
			return path[:i], strings.TrimPrefix(kind, "blobs/"), path[i+len(k):]
		}
	}
	return path, "?", ""
}

// fail answers as the specification says.
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#error-codes
func fail(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	type item struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	_ = json.NewEncoder(w).Encode(map[string][]item{"errors": {{code, message}}})
}
