package main

import (
	"net"
	"sync"
	"time"
)

// window is how many bytes may be on their way in one direction of a
// connection: about what Linux grants a connection at most unless told
// otherwise (tcp_rmem is 6 MiB, of which some is its own).
const window = 4 << 20

// delayed listens on loopback and passes bytes on to a TCP address, each by so
// much later, as a long cable does: what comes together arrives together.
func delayed(to string, delay time.Duration) (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				near.Close()
				continue
			}
			go pass(far, near, delay)
			go pass(near, far, delay)
		}
	}()
	return listener.Addr().String(), nil
}

// packet is what was read at once.
type packet struct {
	bytes []byte
	due   time.Time
}

// cable is one direction.
type cable struct {
	mu     sync.Mutex
	change sync.Cond
	queue  []packet
	held   int
	ended  bool // nothing more comes, or nobody takes it
}

// pass copies until either side has enough, and then closes its half.
func pass(to, from net.Conn, delay time.Duration) {
	c := &cable{}
	c.change.L = &c.mu
	go c.deliver(to)
	for {
		buffer := make([]byte, 64<<10)
		n, err := from.Read(buffer)
		if !c.put(packet{buffer[:n], time.Now().Add(delay)}) {
			from.Close()
			return
		}
		if err != nil {
			c.mu.Lock()
			c.ended = true
			c.change.Broadcast()
			c.mu.Unlock()
			return
		}
	}
}

// put waits for room and says whether anybody takes what is put there.
func (c *cable) put(p packet) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.held >= window && !c.ended {
		c.change.Wait()
	}
	c.queue = append(c.queue, p)
	c.held += len(p.bytes)
	c.change.Broadcast()
	return !c.ended
}

func (c *cable) take() (packet, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) == 0 && !c.ended {
		c.change.Wait()
	}
	if len(c.queue) == 0 {
		return packet{}, false
	}
	p := c.queue[0]
	c.queue = c.queue[1:]
	return p, true
}

func (c *cable) deliver(to net.Conn) {
	for {
		p, ok := c.take()
		if !ok {
			if half, ok := to.(*net.TCPConn); ok {
				_ = half.CloseWrite()
			}
			return
		}
		time.Sleep(time.Until(p.due))
		_, err := to.Write(p.bytes)
		c.mu.Lock()
		c.held -= len(p.bytes)
		c.ended = c.ended || err != nil
		c.change.Broadcast()
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}
