package layout_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/layout/storetest"
	"github.com/carton-oci/carton-oci/pkg/progress"
	"github.com/google/go-cmp/cmp"
)

// A push relies on no blob of a folder that it has not read: one that is damaged,
// whether its size shows it or not, is sent again.
func TestPushRepairsADamagedBlob(t *testing.T) {
	for name, damage := range map[string]func(b []byte) []byte{
		"cut short":          func(b []byte) []byte { return b[:len(b)-1] },
		"too long":           func(b []byte) []byte { return append(b, 0) },
		"empty":              func([]byte) []byte { return nil },
		"one bit is wrong":   func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"zeros of that size": func(b []byte) []byte { return make([]byte, len(b)) },
	} {
		d, a := pushed(t, 1, "v1")
		desc := a.Layers[0].Descriptor
		file := filepath.Join(d.Path(), "blobs", "sha256", desc.Digest.Encoded())
		want, err := os.ReadFile(file)
		if err == nil {
			err = errors.Join(os.Chmod(file, 0o600), os.WriteFile(file, damage(bytes.Clone(want)), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
		if there, err := d.Has(t.Context(), desc, nil); there || err != nil {
			t.Errorf("%s: there: %v, %v", name, there, err)
		}
		var states []string
		result, err := layout.Push(t.Context(), d, a, layout.PushOptions{Tags: []string{"v2"}, Concurrency: 1, Progress: func(e progress.Event) {
			if e.State == progress.Retrying {
				states = append(states, e.Err.Error())
			}
		}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: it is not repaired: %v", name, err)
		}
		if result.Layers[0].Status != layout.Uploaded || len(states) != 1 || !strings.Contains(states[0], "is damaged in ") {
			t.Errorf("%s: status %s, retries %q", name, result.Layers[0].Status, states)
		}
	}
}

// What has arrived of a blob stays after an error, also where its source has no
// ranges, and a push that fails at once takes nothing of it away.
func TestDirKeepsWhatArrived(t *testing.T) {
	down := errors.New("the host is down")
	b, desc := storetest.Blob(9, 6<<20)
	for name, c := range map[string]struct {
		first, last bool // by ranges
		resumed     bool
	}{
		"by ranges":               {true, true, true},
		"by ranges, then without": {true, false, false},
		"without":                 {false, false, false},
		"without, then by ranges": {false, true, true},
	} {
		d := createDir(t, filepath.Join(t.TempDir(), "layout"))
		layer := func(ranged bool, open func(off, n int64) (io.ReadCloser, error)) layout.Layer {
			l := layout.Layer{Descriptor: desc, Open: func(_ context.Context, off int64) (io.ReadCloser, error) {
				return open(off, int64(len(b))-off)
			}}
			if ranged {
				l.OpenRange = func(_ context.Context, off, n int64) (io.ReadCloser, error) { return open(off, n) }
			}
			return l
		}
		push := func(l layout.Layer) (*layout.PushResult, error) {
			a := storetest.Artifact(t, 1)
			a.Layers = append(a.Layers, l)
			return layout.Push(t.Context(), d, a, layout.PushOptions{Concurrency: 1})
		}
		gives := func(off, n int64) (io.ReadCloser, error) {
			return io.NopCloser(io.NewSectionReader(bytes.NewReader(b), off, n)), nil
		}
		breaks := func(off, n int64) (io.ReadCloser, error) {
			if off+n <= 4<<20 {
				return gives(off, n)
			}
			r := io.NewSectionReader(bytes.NewReader(b), off, max(0, 4<<20-off))
			return io.NopCloser(io.MultiReader(r, iotest.ErrReader(down))), nil
		}
		never := func(int64, int64) (io.ReadCloser, error) { return nil, down }
		var before []string
		for i, l := range []layout.Layer{layer(c.first, breaks), layer(c.last, never), layer(!c.last, never)} {
			_, err := push(l)
			if !errors.Is(err, down) || !strings.Contains(fmt.Sprint(hint.Of(err)), desc.Digest.Encoded()+".partial") {
				t.Errorf("%s: push %d: got %v with hints %q", name, i, err, hint.Of(err))
			}
			if i == 0 {
				before = files(t, d.Path())
			} else if diff := cmp.Diff(before, files(t, d.Path())); diff != "" {
				t.Errorf("%s: push %d: %s", name, i, diff)
			}
		}
		result, err := push(layer(c.last, gives))
		if err == nil && (result.BytesResumed >= 3<<20) != c.resumed {
			t.Errorf("%s: %d bytes were used again", name, result.BytesResumed)
		}
		got, rerr := layout.ReadBlob(t.Context(), d, desc, 7<<20)
		if err != nil && !errors.Is(err, layout.ErrDigest) || rerr != nil || !bytes.Equal(got, b) {
			t.Errorf("%s: %v, %v", name, err, rerr)
		}
	}
}
