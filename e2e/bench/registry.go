package main

import (
	"context"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
)

// registry is distribution in this process, reached in several ways, and what
// passed its sockets: headers and TLS included.
type registry struct {
	dir     string
	storage string // of the one in use
	handler atomic.Pointer[http.Handler]
	in, out atomic.Int64
	trips   atomic.Pointer[trips]

	plain  door // HTTP on loopback
	slow   door // HTTP, each connection limited to 20 MB/s
	far    door // HTTP, 25 ms away each way
	farTLS door // the same with TLS, HTTP/2 offered
}

// door is a way into the registry.
type door struct{ scheme, host string }

func (d door) url(path string) string { return d.scheme + "://" + d.host + path }

func newRegistry(dir string) *registry {
	s := &registry{dir: dir}
	s.fresh()
	s.reset()
	plain, secure := s.listen(), s.listen()
	plain.Start()
	secure.EnableHTTP2 = true
	secure.StartTLS()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	check(os.WriteFile(filepath.Join(dir, "ca.pem"), ca, 0o600))
	s.plain = door{"http", plain.Listener.Addr().String()}
	s.slow = door{"http", lay(plain.Listener, cable{rate: 20e6, trips: &s.trips})}
	s.far = door{"http", lay(plain.Listener, cable{delay: 25 * time.Millisecond, trips: &s.trips})}
	s.farTLS = door{"https", lay(secure.Listener, cable{delay: 25 * time.Millisecond, trips: &s.trips})}
	return s
}

// listen returns a server whose connections are counted. What it thinks of killed
// clients stays off the screen.
func (s *registry) listen() *httptest.Server {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		(*s.handler.Load()).ServeHTTP(w, r)
	}))
	server.Listener = counted{server.Listener, s}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	return server
}

// fresh replaces the registry by an empty one.
func (s *registry) fresh() {
	check(os.RemoveAll(s.storage))
	var err error
	s.storage, err = os.MkdirTemp(s.dir, "storage")
	check(err)
	h, _ := testregistry.NewHandler(context.Background(), s.storage)
	s.handler.Store(&h)
}

// plant puts a blob into the registry's storage as a second name of a file,
// however large, and nobody has to send it. The registry believes the digest.
func (s *registry) plant(repository, sum, file string) {
	root := filepath.Join(s.storage, "docker", "registry", "v2")
	blob := filepath.Join(root, "blobs", "sha256", sum[:2], sum)
	layer := filepath.Join(root, "repositories", repository, "_layers", "sha256", sum)
	check(os.MkdirAll(blob, 0o755))
	check(os.Link(file, filepath.Join(blob, "data")))
	check(os.MkdirAll(layer, 0o755))
	check(os.WriteFile(filepath.Join(layer, "link"), []byte("sha256:"+sum), 0o600))
}

// reset forgets what was counted.
func (s *registry) reset() {
	s.in.Store(0)
	s.out.Store(0)
	s.trips.Store(&trips{})
}

// counted is a listener whose connections are counted.
type counted struct {
	net.Listener
	registry *registry
}

// Accept implements net.Listener.
func (l counted) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return countedConn{conn, l.registry}, err
}

type countedConn struct {
	net.Conn
	registry *registry
}

// Read implements net.Conn.
func (c countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.registry.in.Add(int64(n))
	return n, err
}

// Write implements net.Conn.
func (c countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.registry.out.Add(int64(n))
	return n, err
}
