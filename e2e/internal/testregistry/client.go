package testregistry

import (
	"crypto/tls"
	"net/http"
	"testing"
)

// Client returns a client that trusts the registry and nothing else about it:
// it has no credentials. It is what a loader of cartons has.
func (s *Server) Client(t testing.TB) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.pool}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}
