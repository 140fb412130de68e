package registrytest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"time"
)

// Place is where in an exchange a registry stops, or goes on by a byte now and then.
type Place int

// The places, in the order of an exchange.
const (
	// InRequest: the request's body is not read.
	InRequest Place = iota
	// BeforeHeader: nothing comes of the answer. A drip is answers of 1xx.
	BeforeHeader
	// InHeader: the status comes, and then header lines without end.
	InHeader
	// BeforeBody: the header comes, and of the body nothing.
	BeforeBody
	// InBody: half of the body comes. What has none is said to have one.
	InBody
)

// Places are all of them, with their names.
var Places = map[Place]string{
	InRequest: "in the request", BeforeHeader: "before the header", InHeader: "in the header",
	BeforeBody: "before the body", InBody: "in the body",
}

// Stall answers as effect does, nil for the right answer, and stops at a place; every
// is how often a byte moves from then on, 0 for never. It speaks HTTP/1.1.
func (r *Registry) Stall(at Place, every time.Duration, effect Effect) Effect {
	return func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		answer := httptest.NewRecorder()
		if at > InRequest {
			if effect == nil {
				next.ServeHTTP(answer, req)
			} else {
				_, _ = io.Copy(io.Discard, req.Body)
				effect(answer, req, next)
			}
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err) // the test asks for what HTTP/2 can't do
		}
		s := &staller{conn: conn, every: every, done: r.done}
		defer conn.Close()
		s.stop(at, answer, req.Method)
	}
}

// staller is a connection that stops.
type staller struct {
	conn  net.Conn
	every time.Duration
	done  <-chan struct{}
}

func (s *staller) stop(at Place, answer *httptest.ResponseRecorder, method string) {
	var head bytes.Buffer
	fmt.Fprintf(&head, "HTTP/1.1 %d %s\r\n", answer.Code, http.StatusText(answer.Code))
	body := answer.Body.Bytes()
	switch {
	case method == http.MethodHead:
		body = nil
	case len(body) == 0:
		body = bytes.Repeat([]byte(" "), 5000)
	}
	if answer.Header().Get("Content-Length") == "" {
		answer.Header().Set("Content-Length", fmt.Sprint(len(body)))
	}
	_ = answer.Header().Write(&head)
	switch at {
	case InRequest:
		if c, ok := s.conn.(*net.TCPConn); ok {
			_ = c.SetReadBuffer(4 << 10)
		}
		s.repeat(nil)
	case BeforeHeader:
		s.repeat([]byte("HTTP/1.1 103 Early Hints\r\nLink: </>\r\n\r\n"))
	case InHeader:
		s.send(head.Bytes())
		s.repeat([]byte("X: y\r\n"))
	default:
		s.send(append(head.Bytes(), "\r\n"...))
		if at == InBody {
			s.send(body[:len(body)/2])
		}
		if method == http.MethodHead {
			return
		}
		s.repeat([]byte(" "))
	}
}

func (s *staller) send(b []byte) { _, _ = s.conn.Write(b) }

// repeat writes some bytes, or with none reads one, again and again until the test
// or the connection ends.
func (s *staller) repeat(b []byte) {
	closed := make(chan struct{})
	if s.every == 0 || b != nil {
		go func() { // whoever has sent all sends no more until it goes
			defer close(closed)
			if b != nil {
				_, _ = io.Copy(io.Discard, s.conn)
			} else {
				<-s.done
			}
		}()
	}
	for {
		var tick <-chan time.Time
		if s.every > 0 {
			tick = time.After(s.every)
		}
		select {
		case <-s.done:
			return
		case <-closed:
			return
		case <-tick:
		}
		var err error
		if b == nil {
			_, err = s.conn.Read(make([]byte, 1))
		} else {
			_, err = s.conn.Write(b)
		}
		if err != nil {
			return
		}
	}
}
