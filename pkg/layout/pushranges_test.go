package layout_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/layout/storetest"
)

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
