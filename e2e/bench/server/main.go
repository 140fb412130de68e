// Server is what the benchmark transfers to and from, in a process of its own so
// that its memory and processor time are not counted as a client's. It runs
// distribution, reached in three ways, and a server that makes its bytes, and is
// told what to do over HTTP. It ends with its standard input.
package main

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"
)

// Addresses is the one line that it prints: where everything is.
type Addresses struct {
	Control   string // what it is told: see control.go
	Plain     string // the registry over plain HTTP
	Slow      string // the same, but each connection is limited to Rate
	Far       string // the same over TLS, HTTP/2 offered, behind the delay
	Synthetic string // the server that makes its bytes
	CAFile    string // who vouches for Far
}

// quiet keeps what http.Server thinks of killed clients off the screen.
var quiet = log.New(io.Discard, "", 0)

func main() {
	dir := flag.String("dir", "", "keep blobs below `DIR`")
	rate := flag.Int64("rate", 20e6, "limit connections of the slow address to so many `BYTES` a second")
	delay := flag.Duration("delay", 25*time.Millisecond, "delay the far address by `DURATION` each way")
	flag.Parse()
	if err := run(*dir, *rate, *delay); err != nil {
		fmt.Fprintln(os.Stderr, "bench server:", err)
		os.Exit(1)
	}
}

func run(dir string, rate int64, delay time.Duration) error {
	s := &service{dir: dir, wire: &wire{}, made: newMaker()}
	if err := s.fresh(context.Background()); err != nil {
		return err
	}
	var at Addresses
	for _, l := range []struct {
		address *string
		handler http.Handler
		rate    int64
		wire    *wire
	}{
		{&at.Control, s.control(), 0, &wire{}},
		{&at.Plain, s, 0, s.wire},
		{&at.Slow, s, rate, s.wire},
		{&at.Synthetic, s.made, 0, s.wire},
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		*l.address = listener.Addr().String()
		server := &http.Server{Handler: l.handler, ReadHeaderTimeout: time.Minute, ErrorLog: quiet}
		go func() { _ = server.Serve(&counted{listener, l.wire, l.rate}) }()
	}
	far := httptest.NewUnstartedServer(s) // for its certificate
	far.EnableHTTP2 = true
	far.Config.ErrorLog = quiet
	far.Listener = &counted{far.Listener, s.wire, 0}
	far.StartTLS()
	at.CAFile = filepath.Join(dir, "ca.pem")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: far.Certificate().Raw})
	if err := os.WriteFile(at.CAFile, ca, 0o600); err != nil {
		return err
	}
	address, err := delayed(far.Listener.Addr().String(), delay)
	if err != nil {
		return err
	}
	at.Far = address
	if err := json.NewEncoder(os.Stdout).Encode(at); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
