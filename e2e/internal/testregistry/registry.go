// Package testregistry runs the registry that everybody runs, distribution, in
// the test's process: over plain HTTP or TLS with an own authority, open, with
// a password file or with tokens. It counts what travels.
package testregistry

import (
	"context"
	"crypto/x509"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/distribution/distribution/v3/configuration"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd" // an access controller
	_ "github.com/distribution/distribution/v3/registry/auth/token"    // an access controller
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem" // the storage
	"github.com/sirupsen/logrus"
	"golang.org/x/crypto/bcrypt"
)

// Auth says how a registry wants to be asked.
type Auth int

// The kinds of access control.
const (
	Open     Auth = iota // everybody may do everything
	Htpasswd             // basic authentication with a password file
	Token                // bearer tokens from a server on the same host
)

// Options say what kind of registry is wanted. The zero value is an open one
// over plain HTTP.
type Options struct {
	// TLS serves HTTPS with a certificate of an authority made for the test.
	TLS bool
	// ClientCert refuses connections without the client certificate of
	// [Server.ClientCert]; it needs TLS.
	ClientCert bool
	// Auth is the access control.
	Auth Auth
	// Users are names and passwords, with Htpasswd and Token.
	Users map[string]string
	// AnonymousPull lets everybody read, with Token. A token is needed all the
	// same.
	AnonymousPull bool
	// NoDelete answers every deletion of a manifest with 405, which is what a registry
	// does unless it is configured.
	NoDelete bool
	// Middleware stands between the counting and the registry.
	Middleware func(http.Handler) http.Handler
}

// Server is a registry that runs until its test ends.
type Server struct {
	// Host is where it listens, as in a reference: 127.0.0.1:PORT.
	Host string
	// Traffic is what it was asked and what it answered.
	Traffic *Traffic
	// CAFile is the certificate of the authority, in PEM, with TLS.
	CAFile string
	// CertFile and KeyFile are a client certificate of that authority.
	CertFile, KeyFile string

	url      string
	pool     *x509.CertPool
	storage  string
	registry http.Handler // without what stands in between
}

// Start runs a registry until the test ends.
func Start(t testing.TB, opts Options) *Server {
	t.Helper()
	logrus.SetOutput(io.Discard)
	s := &Server{Traffic: &Traffic{}, storage: t.TempDir()}
	server := httptest.NewUnstartedServer(nil)
	s.Host = server.Listener.Addr().String()
	s.url = "http://" + s.Host
	if opts.TLS {
		s.url = "https://" + s.Host
		server.TLS = s.serverTLS(t, opts.ClientCert)
	}

	mux := http.NewServeMux()
	app := handlers.NewApp(t.Context(), s.config(t, opts, mux))
	s.registry = app
	registry := s.registry
	if opts.Middleware != nil {
		registry = opts.Middleware(registry)
	}
	mux.Handle("/", registry)
	server.Config.Handler = s.Traffic.count(drain(mux))
	server.Config.ErrorLog = quiet()
	if opts.TLS {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		if err := app.Shutdown(); err != nil {
			t.Errorf("registry: %v", err)
		}
	})
	return s
}

// config returns the registry's configuration. A token server is added to mux.
func (s *Server) config(t testing.TB, opts Options, mux *http.ServeMux) *configuration.Configuration {
	t.Helper()
	c := openConfig(s.storage)
	if opts.NoDelete {
		delete(c.Storage, "delete")
	}
	switch opts.Auth {
	case Htpasswd:
		c.Auth = configuration.Auth{"htpasswd": {"realm": "tests", "path": htpasswd(t, opts.Users)}}
	case Token:
		tokens := newTokenServer(t, s.url, opts)
		mux.Handle("/token", tokens)
		c.Auth = configuration.Auth{"token": tokens.parameters()}
	}
	return c
}

// openConfig is the configuration of a registry that everybody may use and that
// keeps everything below dir.
func openConfig(dir string) *configuration.Configuration {
	c := &configuration.Configuration{
		Version: "0.1",
		Storage: configuration.Storage{
			"filesystem":  {"rootdirectory": dir},
			"maintenance": {"uploadpurging": map[any]any{"enabled": false}},
			"delete":      {"enabled": true},
		},
	}
	c.Log.AccessLog.Disabled = true
	c.HTTP.Secret = "secret of a registry for tests"
	c.HTTP.RelativeURLs = true
	return c
}

// NewHandler returns an open registry without a server, for a program that has
// its own. It keeps everything below dir; end releases what it holds.
func NewHandler(ctx context.Context, dir string) (h http.Handler, end func() error) {
	logrus.SetOutput(io.Discard)
	app := handlers.NewApp(ctx, openConfig(dir))
	return drain(app), app.Shutdown
}

// htpasswd writes a password file.
func htpasswd(t testing.TB, users map[string]string) string {
	t.Helper()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(users)) {
		hash, err := bcrypt.GenerateFromPassword([]byte(users[name]), bcrypt.MinCost)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(name + ":" + string(hash) + "\n")
	}
	path := filepath.Join(t.TempDir(), "htpasswd")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// URL returns the registry's address with the path behind it.
func (s *Server) URL(path string) string { return s.url + path }

// Port returns the port, for references that name the host another way.
func (s *Server) Port() string {
	_, port, _ := net.SplitHostPort(s.Host)
	return port
}

// drain reads what a handler left of a request's body, without which the
// connection, and with it the server's end, would wait for the client.
func drain(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r)
		_, _ = io.Copy(io.Discard, r.Body)
	})
}
