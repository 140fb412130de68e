package main

import (
	"net"
	"sync/atomic"
	"time"
)

// wire counts what passes the sockets: headers and TLS included.
type wire struct{ in, out atomic.Int64 }

func (w *wire) reset() {
	w.in.Store(0)
	w.out.Store(0)
}

// counted is a listener whose connections are counted, and limited to rate bytes
// a second in each direction; 0 is no limit.
type counted struct {
	net.Listener
	wire *wire
	rate int64
}

// Accept implements net.Listener.
func (l *counted) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &countedConn{Conn: conn, wire: l.wire, reads: pace{rate: l.rate}, writes: pace{rate: l.rate}}, nil
}

type countedConn struct {
	net.Conn
	wire          *wire
	reads, writes pace // one goroutine reads and one writes
}

// Read implements net.Conn.
func (c *countedConn) Read(p []byte) (int, error) {
	p = p[:min(len(p), c.reads.most())]
	n, err := c.Conn.Read(p)
	c.wire.in.Add(int64(n))
	c.reads.wait(n)
	return n, err
}

// Write implements net.Conn.
func (c *countedConn) Write(p []byte) (int, error) {
	total := 0
	for {
		part := p[total:]
		part = part[:min(len(part), c.writes.most())]
		n, err := c.Conn.Write(part)
		total += n
		c.wire.out.Add(int64(n))
		c.writes.wait(n)
		if err != nil || total == len(p) {
			return total, err
		}
	}
}

// pace keeps one direction of a connection below its rate.
type pace struct {
	rate int64
	next time.Time // when the next byte may pass
}

// most is how many bytes may pass at once: what 2 ms are worth.
func (p *pace) most() int {
	if p.rate == 0 {
		return 1 << 30
	}
	return int(max(1, p.rate/500))
}

func (p *pace) wait(n int) {
	if p.rate == 0 {
		return
	}
	now := time.Now()
	if p.next.Before(now.Add(-10 * time.Millisecond)) {
		p.next = now.Add(-10 * time.Millisecond) // what was not used is lost
	}
	p.next = p.next.Add(time.Duration(int64(n) * int64(time.Second) / p.rate))
	time.Sleep(time.Until(p.next))
}
