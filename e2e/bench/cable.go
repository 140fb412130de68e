package main

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// cable is a network between clients and a server on loopback. Each byte arrives
// delay later than it was sent, and what comes together arrives together; a new
// connection takes a round trip before its first byte. With a rate, a connection
// carries no more in a direction than that many bytes a second.
type cable struct {
	delay time.Duration // one way
	rate  int64         // 0 is no limit
	trips *atomic.Pointer[trips]
}

// window is how many bytes may be on their way in one direction of a
// connection: about what Linux grants a connection at most unless told
// otherwise (tcp_rmem is 6 MiB, of which some is its own).
const window = 4 << 20

// lay listens at the near end of a cable to a server, and says where.
func lay(to net.Listener, c cable) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			go c.connect(near.(*net.TCPConn), to.Addr())
		}
	}()
	return listener.Addr().String()
}

func (c cable) connect(near *net.TCPConn, to net.Addr) {
	defer near.Close()
	far, err := net.DialTCP("tcp", nil, to.(*net.TCPAddr))
	if err != nil {
		return
	}
	defer far.Close()
	t, open := c.trips.Load(), time.Now().Add(2*c.delay)
	first := t.count() + 1 // the trip that connects
	reached := first       // the highest request that the server has
	var both sync.WaitGroup
	both.Go(func() {
		c.pass(far, near, open, func() int { return max(first, t.count()) }, func(n int) { t.raise(&reached, n) })
	})
	both.Go(func() {
		c.pass(near, far, open, func() int { return t.raise(&reached, 0) + 1 }, func(n int) { t.raise(&t.most, n) })
	})
	both.Wait()
}

// packet is what was read at once.
type packet struct {
	bytes []byte
	due   time.Time
	trip  int
}

// pass copies until either side has enough, and then closes its half. No byte
// begins its way before free. Its trip is asked for when it is sent, and told
// before it is handed over.
func (c cable) pass(to, from *net.TCPConn, free time.Time, sent func() int, arrived func(trip int)) {
	queue, room := make(chan packet, 1<<12), semaphore.NewWeighted(window)
	var delivered sync.WaitGroup
	delivered.Go(func() {
		for p := range queue {
			time.Sleep(time.Until(p.due))
			arrived(p.trip)
			if _, err := to.Write(p.bytes); err != nil {
				_ = from.CloseRead() // nobody takes what it says
			}
			room.Release(int64(len(p.bytes)))
		}
		_ = to.CloseWrite()
	})
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			break
		}
		if now := time.Now(); free.Before(now) {
			free = now
		}
		if c.rate > 0 {
			free = free.Add(time.Duration(int64(n) * int64(time.Second) / c.rate))
		}
		_ = room.Acquire(context.Background(), int64(n)) // never ends early
		queue <- packet{append([]byte(nil), buffer[:n]...), free.Add(c.delay), sent()}
	}
	close(queue)
	delivered.Wait()
}

// trips counts the round trips in a row of one client: the longest chain of
// requests of which each was sent after the answer to the one before had
// arrived. Requests and answers are what passes the cable, so that connecting
// and the handshake of TLS count, and what goes on at the same time does not. A
// request's number is the highest of the answers that the client has had, on any
// connection; an answer's is one more than that of the requests that have
// reached the server on its connection.
type trips struct {
	mu   sync.Mutex
	most int // of the answers that arrived: the result
}

// raise makes a number at least n, and returns what it is then.
func (t *trips) raise(number *int, n int) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	*number = max(*number, n)
	return *number
}

func (t *trips) count() int { return t.raise(&t.most, 0) }
