package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/pkg/layout"
)

func has(t *testing.T, s layout.Store) {
	b, desc := Blob(1, 1000)
	if there, err := s.Has(t.Context(), desc, nil); there || err != nil {
		t.Errorf("of an empty store: got %v, %v", there, err)
	}
	push(t, s, b, desc)
	if there, err := s.Has(t.Context(), desc, func(int64) {}); !there || err != nil {
		t.Errorf("of what was pushed: got %v, %v", there, err)
	}
	desc.Size++
	if there, _ := s.Has(t.Context(), desc, nil); there {
		t.Error("has a blob of another size")
	}
}

func mountFromNowhere(t *testing.T, s layout.Store) {
	b, desc := Blob(1, 1000)
	there, err := s.Mount(t.Context(), desc, layout.Origin{Registry: "registry.example", Repository: "org/model"})
	if there || err != nil {
		t.Errorf("got %v, %v, want that nothing is mounted", there, err)
	}
	wantNoBlob(t, s, desc)
	push(t, s, b, desc)
	wantBlob(t, s, b, desc)
}

// pushGoesOn cancels a push in the middle. The next one brings the whole blob,
// whatever it says was there. A store that is still busy with what was cut has more
// than it says, and may be sent some of it twice: it is asked again with more time.
func pushGoesOn(t *testing.T, s layout.Store) {
	for i, wait := range []time.Duration{0, 100 * time.Millisecond, 2 * time.Second} {
		what := goOn(t, s, byte(i+1), wait)
		if what == "" {
			return
		}
		t.Logf("%v after it was cut: %s", wait, what)
	}
	t.Error("a push that goes on sends more than the whole blob")
}

// goOn says how a push that goes on told of other bytes than there are, "" for in no
// way.
func goOn(t *testing.T, s layout.Store, seed byte, wait time.Duration) string {
	t.Helper()
	const size = 8 << 20
	b, desc := Blob(seed, size)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	left := int64(size / 2)
	cut := func(off, n int64) io.ReadCloser {
		return io.NopCloser(&cancelsBehind{Reader: bytes.NewReader(b[off : off+n]), left: &left, cancel: cancel})
	}
	l := layout.Layer{
		Descriptor: desc, Connections: 1,
		Open:      func(_ context.Context, off int64) (io.ReadCloser, error) { return cut(off, size-off), nil },
		OpenRange: func(_ context.Context, off, n int64) (io.ReadCloser, error) { return cut(off, n), nil },
	}
	if err := s.Push(ctx, l, layout.Watch{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	time.Sleep(wait)
	left = size * 2
	var resumed, sent, moved int64
	w := layout.Watch{
		Resumed: func(n int64) { resumed = n }, Sent: func(n int64) { sent += n }, Moved: func(off int64) { moved = off },
		Retrying: func(_ int64, err error) { t.Errorf("tries again: %v", err) },
	}
	if err := s.Push(t.Context(), l, w); err != nil {
		t.Fatal(err)
	}
	wantBlob(t, s, b, desc)
	if resumed < 0 || resumed >= size || sent <= 0 || sent > size || resumed == 0 && sent != size || moved != size {
		return fmt.Sprintf("%d bytes were there, %d were sent and it ended at %d, want %d", resumed, sent, moved, size)
	}
	return ""
}

// cancelsBehind ends a push when it has read so many bytes.
type cancelsBehind struct {
	io.Reader
	left   *int64
	cancel func()
}

func (c *cancelsBehind) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	if *c.left -= int64(n); *c.left <= 0 {
		c.cancel()
	}
	return n, err
}

func pushStream(t *testing.T, s layout.Store) {
	for i, n := range []int{2, 1000, 3<<20 + 7} {
		b, desc := Blob(byte(i), n)
		var mu sync.Mutex
		var sent int64
		w := layout.Watch{Sent: func(n int64) { mu.Lock(); sent += n; mu.Unlock() }}
		got, err := s.PushStream(t.Context(), desc.Size, Opener(b), w)
		switch {
		case errors.Is(err, layout.ErrNoStream):
			wantNoBlob(t, s, desc)
		case err != nil || got != desc.Digest || sent != desc.Size:
			t.Errorf("%d bytes: got %s, %v and %d sent, want %s", n, got, err, sent, desc.Digest)
		default:
			wantBlob(t, s, b, desc)
		}
	}
}

func pushStreamOfOtherBytes(t *testing.T, s layout.Store) {
	b, desc := Blob(1, 300_000)
	_, longer := Blob(1, 300_001)
	for name, size := range map[string]int64{"shorter": desc.Size + 1, "longer": desc.Size - 1} {
		_, err := s.PushStream(t.Context(), size, Opener(b), layout.Watch{})
		if !errors.Is(err, layout.ErrDigest) && !errors.Is(err, layout.ErrNoStream) {
			t.Errorf("%s: got %v, want ErrDigest or ErrNoStream", name, err)
		}
	}
	wantNoBlob(t, s, desc)
	wantNoBlob(t, s, longer)
	broken := errors.New("the disk is gone")
	failing := func(context.Context, int64) (io.ReadCloser, error) { return nil, broken }
	if _, err := s.PushStream(t.Context(), 1000, failing, layout.Watch{}); !errors.Is(err, broken) && !errors.Is(err, layout.ErrNoStream) {
		t.Errorf("got %v, want %v or ErrNoStream", err, broken)
	}
}
