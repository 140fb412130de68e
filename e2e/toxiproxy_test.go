package e2e

import (
	"bytes"
	"encoding/json"
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
	Stream     string           `json:"stream"`   // upstream, downstream
	Toxicity   float64          `json:"toxicity"` // how likely it strikes a connection
	Attributes map[string]int64 `json:"attributes"`
}

// both returns the toxic for each direction.
func both(kind string, attributes map[string]int64) []toxic {
	return []toxic{
		{kind + "_up", kind, "upstream", 1, attributes},
		{kind + "_down", kind, "downstream", 1, attributes},
	}
}

// badNetwork lies before a host, and returns the address to reach it by. All that
// is wrong with it is there from the beginning: toxiproxy 2.5.0 may hang where a
// toxic is added or removed while connections are open.
func badNetwork(t *testing.T, host string, toxics ...toxic) string {
	t.Helper()
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	proxy := toxiproxy.NewProxy(api, t.Name(), "127.0.0.1:0", host)
	for _, x := range toxics {
		text, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := proxy.Toxics.AddToxicJson(bytes.NewReader(text)); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Stop)
	return proxy.Listen
}

func TestBadNetwork(t *testing.T) {
	t.Parallel()
	tests := map[string][]toxic{
		"latency":   both("latency", map[string]int64{"latency": 20, "jitter": 15}),
		"bandwidth": both("bandwidth", map[string]int64{"rate": 16 << 10}), // KB/s
		// Every connection is closed after 3 MiB, less than any weight has.
		"limit data": both("limit_data", map[string]int64{"bytes": 3 << 20}),
		// The same, with a reset: where there is a reset_peer, however unlikely to
		// strike, every connection ends with one.
		"reset": append(both("limit_data", map[string]int64{"bytes": 1 << 20}),
			toxic{Name: "reset", Type: "reset_peer", Stream: "downstream", Toxicity: 0}),
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
			ref := badNetwork(t, s.Host, toxics...) + "/org/m:1"
			u.must(t, "push", "m.carton", ref)
			u.must(t, "verify", s.Host+"/org/m:1")
			u.pull(t, ref, "-o", "back.carton")
			back := readZip(t, u.path("back.carton"))
			same(t, &back.model, m)
		})
	}
}
