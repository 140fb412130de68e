package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	"github.com/rs/zerolog"
)

// The promise: over a bad network a push and a pull take longer and end the
// same, byte for byte.

// toxic is one thing that goes wrong on the way, as toxiproxy's API names it.
type toxic struct {
	Name       string           `json:"name"`
	Type       string           `json:"type"`
	Stream     string           `json:"stream"` // upstream, downstream
	Attributes map[string]int64 `json:"attributes"`
}

// both returns the toxic for each direction.
func both(kind string, attributes map[string]int64) []toxic {
	return []toxic{
		{kind + "_up", kind, "upstream", attributes},
		{kind + "_down", kind, "downstream", attributes},
	}
}

// badNetwork lies between a client and a server.
type badNetwork struct{ proxy *toxiproxy.Proxy }

func newBadNetwork(t *testing.T, host string, toxics ...toxic) *badNetwork {
	t.Helper()
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	n := &badNetwork{toxiproxy.NewProxy(api, t.Name(), "127.0.0.1:0", host)}
	if err := n.proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.proxy.Stop)
	for _, x := range toxics {
		n.add(t, x)
	}
	return n
}

func (n *badNetwork) add(t *testing.T, x toxic) {
	t.Helper()
	text, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.proxy.Toxics.AddToxicJson(strings.NewReader(string(text))); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func (n *badNetwork) remove(t *testing.T, x toxic) {
	t.Helper()
	if err := n.proxy.Toxics.RemoveToxic(context.Background(), x.Name); err != nil {
		t.Fatalf("%s: %v", x.Name, err)
	}
}

func TestBadNetwork(t *testing.T) {
	t.Parallel()
	tests := map[string][]toxic{
		"latency":   both("latency", map[string]int64{"latency": 20, "jitter": 15}),
		"bandwidth": both("bandwidth", map[string]int64{"rate": 16 << 10}), // KB/s
		// Every connection is closed after 3 MiB, less than any weight has.
		"limit data": both("limit_data", map[string]int64{"bytes": 3 << 20}),
		"slow close": both("slow_close", map[string]int64{"delay": 100}),
		"slicer":     both("slicer", map[string]int64{"average_size": 1400, "size_variation": 600, "delay": 1}),
	}
	m := weighty()
	for name, toxics := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t)
			m.write(t, u.path("m.carton"))
			s := testregistry.Start(t, testregistry.Options{})
			ref := newBadNetwork(t, s.Host, toxics...).proxy.Listen + "/org/m:1"
			u.must(t, "push", "m.carton", ref)
			u.must(t, "verify", s.Host+"/org/m:1")
			u.pull(t, ref, "-o", "back.carton")
			back := readZip(t, u.path("back.carton"))
			same(t, &back.model, m)
		})
	}
}

// What strikes in the middle of a transfer is set off by bytes: a trap holds
// everything there, and lets it go when the network has become bad.
func TestNetworkBreaksInTheMiddle(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		toxics []toxic
		points []int64 // bytes of blobs that have passed
		flags  []string
	}{
		"reset": {
			toxics: both("reset_peer", map[string]int64{"timeout": 0}),
			points: []int64{1 << 20, 3 << 20, 6 << 20, 9 << 20, 12 << 20, 15 << 20},
		},
		// Every byte is swallowed from here on, and no connection ends by itself.
		"stall": {
			toxics: both("timeout", map[string]int64{"timeout": 0}),
			points: []int64{5 << 20},
			flags:  []string{"--stall-timeout", "1s"},
		},
	}
	m := weighty()
	for name, tt := range tests {
		for _, direction := range []string{"push", "pull"} {
			t.Run(name+" "+direction, func(t *testing.T) {
				t.Parallel()
				u := newUser(t)
				m.write(t, u.path("m.carton"))
				s := testregistry.Start(t, testregistry.Options{})
				clean := s.Host + "/org/m:1"
				if direction == "pull" {
					u.must(t, "push", "m.carton", clean)
				}
				traps := newTraps(direction == "push", tt.points)
				front := s.Front(t, traps.middleware)
				n := newBadNetwork(t, front.Host)
				done := make(chan struct{})
				go func() {
					defer close(done)
					n.strike(t, front, traps, tt.toxics)
				}()
				ref := n.proxy.Listen + "/org/m:1"
				args := append([]string{"push", "m.carton", ref}, tt.flags...)
				if direction == "pull" {
					args = append([]string{"pull", ref, "-o", "back.carton"}, tt.flags...)
				}
				u.must(t, args...)
				<-done
				if direction == "push" {
					u.must(t, "pull", clean, "-o", "back.carton")
				}
				back := readZip(t, u.path("back.carton"))
				same(t, &back.model, m)
			})
		}
	}
}

// traps spring one after the other.
type traps []*trap

func newTraps(upload bool, points []int64) traps {
	var ts traps
	for _, at := range points {
		ts = append(ts, newTrap(upload, at))
	}
	return ts
}

func (ts traps) middleware(next http.Handler) http.Handler {
	for _, t := range ts {
		next = t.middleware(next)
	}
	return next
}

// strike makes the network bad whenever a trap springs, until the client has
// come with a new connection.
func (n *badNetwork) strike(t *testing.T, front *testregistry.Front, ts traps, toxics []toxic) {
	for i, trap := range ts {
		<-trap.sprung
		before := front.Connections()
		for _, x := range toxics {
			n.add(t, x)
		}
		close(trap.ended)
		front.AwaitConnections(before + 1)
		for _, x := range toxics {
			n.remove(t, x)
		}
		t.Logf("strike %d, at %d bytes: %d connections before", i+1, trap.at, before)
	}
}
