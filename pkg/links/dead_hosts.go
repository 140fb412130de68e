package links

import (
	"context"
	"errors"
	"net"
	"net/url"
	"sync"

	"github.com/carton-oci/carton-oci/internal/stall"
)

// knownHosts remembers which hosts did not answer: what a stranger's LINKS says
// of one costs its time limits once, not for every link to it. A host is asked
// by one caller at a time until it has answered, whatever the answer was.
type knownHosts struct {
	mu    sync.Mutex
	hosts map[string]*knownHost // as URLs write them
}

type knownHost struct {
	turn chan struct{} // holds one value while somebody asks for the first time

	mu       sync.Mutex
	answered bool
	dead     error
}

// ask calls do, unless the host of u is dead: then it returns why.
func (h *knownHosts) ask(ctx context.Context, u *url.URL, do func() error) error {
	host := h.host(u.Host)
	if answered, err := host.state(); answered || err != nil {
		if err == nil {
			err = host.learn(ctx, do())
		}
		return err
	}
	select {
	case host.turn <- struct{}{}:
		defer func() { <-host.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if _, err := host.state(); err != nil {
		return err
	}
	return host.learn(ctx, do())
}

func (h *knownHosts) host(name string) *knownHost {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hosts == nil {
		h.hosts = map[string]*knownHost{}
	}
	host := h.hosts[name]
	if host == nil {
		host = &knownHost{turn: make(chan struct{}, 1)}
		h.hosts[name] = host
	}
	return host
}

func (h *knownHost) state() (answered bool, dead error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answered, h.dead
}

// learn notes what err, which it returns, says of the host: nothing where the
// caller gave up.
func (h *knownHost) learn(ctx context.Context, err error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case ctx.Err() != nil:
	case isDead(err):
		h.dead = err
	default:
		h.answered = true
	}
	return err
}

// isDead reports whether err, after all attempts, says that nobody answers.
func isDead(err error) bool {
	var dial *net.OpError
	var name *net.DNSError
	return errors.Is(err, stall.ErrStalled) || errors.As(err, &name) || errors.As(err, &dial) && dial.Op == "dial"
}
