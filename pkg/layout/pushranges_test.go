package layout_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"sync"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/layout/storetest"
)

// All layers that are read by ranges share the push's connections.
func TestPushSharesItsConnections(t *testing.T) {
	var mu sync.Mutex
	open, most := 0, 0
	spec := layout.ArtifactSpec{Config: configLayer()}
	for i := range 4 {
		b, desc := storetest.Blob(byte(i), 9<<20)
		l := storetest.Layer(desc, b)
		l.OpenRange = func(_ context.Context, off, n int64) (io.ReadCloser, error) {
			mu.Lock()
			defer mu.Unlock()
			open++
			most = max(most, open)
			return &onClose{Reader: bytes.NewReader(b[off : off+n]), close: func() { mu.Lock(); open--; mu.Unlock() }}, nil
		}
		spec.Layers = append(spec.Layers, l)
	}
	d := createDir(t, filepath.Join(t.TempDir(), "layout"))
	if _, err := layout.Push(t.Context(), d, artifact(t, spec), layout.PushOptions{Concurrency: 3}); err != nil {
		t.Fatal(err)
	}
	if most < 2 || most > 3 || open != 0 {
		t.Errorf("%d connections were open at once, and %d still are; want at most 3, and 0", most, open)
	}
}

type onClose struct {
	io.Reader
	close func()
}

func (c *onClose) Close() error { c.close(); return nil }

// A folder makes its attempts itself: they don't multiply with those of the push.
func TestPushToADirTriesThreeTimes(t *testing.T) {
	b, desc := storetest.Blob(1, 1000)
	for name, ranged := range map[string]bool{"by ranges": true, "as a stream": false} {
		opened := 0
		flaky := passing{errors.New("wrong bytes from a link")}
		l := layout.Layer{Descriptor: desc, Open: func(context.Context, int64) (io.ReadCloser, error) { opened++; return nil, flaky }}
		if ranged {
			l.Open = storetest.Opener(b)
			l.OpenRange = func(context.Context, int64, int64) (io.ReadCloser, error) { opened++; return nil, flaky }
		}
		a := artifact(t, layout.ArtifactSpec{Config: configLayer(), Layers: []layout.Layer{l}})
		d := createDir(t, filepath.Join(t.TempDir(), "layout"))
		if _, err := layout.Push(t.Context(), d, a, layout.PushOptions{}); !errors.Is(err, flaky) || opened != 3 {
			t.Errorf("%s: got %v after %d attempts, want 3", name, err, opened)
		}
	}
}
