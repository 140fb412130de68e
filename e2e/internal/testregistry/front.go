package testregistry

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Front is one more door into a registry: an address of its own, with something
// in between, and its own account of what travelled.
type Front struct {
	// Host is where it listens, as in a reference.
	Host string
	// Traffic is what passed here.
	Traffic *Traffic
}

// frontBuffer is how many bytes the system may take from a handler that no
// client has asked for yet, in each direction. Without a limit it is megabytes a
// connection, and what was written here says little of what arrived.
const frontBuffer = 64 << 10

// Front opens a door, over plain HTTP, until the test ends. Middleware stands
// between the counting and the registry; nil is nothing.
func (s *Server) Front(t testing.TB, middleware func(http.Handler) http.Handler) *Front {
	t.Helper()
	return s.FrontOn(t, nil, middleware)
}

// FrontOn is Front that listens where it is told to.
func (s *Server) FrontOn(t testing.TB, on net.Listener, middleware func(http.Handler) http.Handler) *Front {
	t.Helper()
	f := &Front{Traffic: &Traffic{}}
	next := s.registry
	if middleware != nil {
		next = middleware(next)
	}
	server := httptest.NewUnstartedServer(f.Traffic.count(drain(next)))
	if on != nil {
		_ = server.Listener.Close()
		server.Listener = on
	}
	server.Listener = shallow{server.Listener}
	server.Config.ErrorLog = quiet()
	server.Start()
	f.Host = server.Listener.Addr().String()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return f
}

// shallow gives connections small buffers.
type shallow struct{ net.Listener }

func (l shallow) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(frontBuffer)
		_ = tcp.SetWriteBuffer(frontBuffer)
	}
	return conn, nil
}
