package zstdframe

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

const most = 128 << 20

// wideFrame returns a frame that asks for a window of 128 MiB, of little content.
func wideFrame(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithWindowSize(most), zstd.WithEncoderConcurrency(1))
	if err == nil {
		// More than one write, so that the writer can't make it a single segment.
		_, err = io.Copy(w, strings.NewReader(strings.Repeat("content", 100_000)))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// begin opens a frame and reads its first byte: by then it has its window.
func begin(b []byte) (io.ReadCloser, error) {
	r := NewReader(context.Background(), bytes.NewReader(b), most)
	_, err := r.Read(make([]byte, 1))
	return r, err
}

func open(t testing.TB, b []byte) io.ReadCloser {
	t.Helper()
	r, err := begin(b)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestLargeWindowsTakeTurns(t *testing.T) {
	frame := wideFrame(t)
	first := open(t, frame)
	if !Short() {
		t.Fatal("a window of 128 MiB leaves room for another")
	}
	opened := make(chan io.ReadCloser)
	go func() {
		r, err := begin(frame)
		if err != nil {
			t.Error(err)
		}
		opened <- r
	}()
	select {
	case <-opened:
		t.Fatal("the second frame did not wait for the first")
	case <-time.After(20 * time.Millisecond):
	}
	// Its end is enough; nobody need have closed it yet.
	if n, err := io.Copy(io.Discard, first); n != 699_999 || err != nil {
		t.Errorf("the first: got %d bytes, %v", n, err)
	}
	second := <-opened
	if n, err := first.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("behind its end: got %d, %v, want io.EOF again", n, err)
	}
	for range 2 {
		if err := errors.Join(first.Close(), second.Close()); err != nil {
			t.Error(err)
		}
	}
	if Short() {
		t.Error("closed frames keep their windows")
	}
}

func TestSmallWindowsWaitForNobody(t *testing.T) {
	defer open(t, wideFrame(t)).Close()
	for range 20 {
		r := open(t, compressed(t, "content"))
		t.Cleanup(func() { r.Close() })
		if b, err := io.ReadAll(r); string(b) != "ontent" || err != nil {
			t.Errorf("got %q, %v", b, err)
		}
	}
}

func TestBrokenFramesGiveTheirWindowsBack(t *testing.T) {
	frame := wideFrame(t)
	for _, n := range []int{6, 20, len(frame) / 2, len(frame) - 1} {
		if _, err := io.Copy(io.Discard, NewReader(context.Background(), bytes.NewReader(frame[:n]), most)); err == nil {
			t.Errorf("cut at %d: got no error", n)
		}
		if Short() {
			t.Fatalf("cut at %d: the window is kept", n)
		}
	}
}

// Who holds one frame open and waits for another would wait for ever.
func TestWhoWaitsForItselfIsTold(t *testing.T) {
	defer func(d time.Duration) { deadlock = d }(deadlock)
	deadlock = 10 * time.Millisecond
	frame := wideFrame(t)
	first := open(t, frame)
	defer first.Close()
	if _, err := begin(frame); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v, want ErrBusy", err)
	}
	if n, err := io.Copy(io.Discard, first); n != 699_999 || err != nil {
		t.Errorf("the first: got %d bytes, %v", n, err)
	}
}

// A frame of a single segment has no window of its own: all of its content is
// one. This one says that it has 4 GiB of it.
func TestSingleSegmentsAreWindows(t *testing.T) {
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0b11100000, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0}
	if _, err := begin(frame); !errors.Is(err, ErrWindow) {
		t.Errorf("got %v, want ErrWindow", err)
	}
}

func compressed(t testing.TB, content string) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll([]byte(content), nil)
}

// One decoder serves one frame after the other, so that there are never two windows
// of the largest size; and nobody keeps its memory when there are no more.
func TestOneDecoderForLargeWindows(t *testing.T) {
	func() {
		frame := wideFrame(t)
		first := open(t, frame).(*reader)
		d := first.d
		first.Close()
		second := open(t, frame).(*reader)
		if second.d != d {
			t.Error("the second frame has another decoder")
		}
		if n, err := io.Copy(io.Discard, second); n != 699_999 || err != nil {
			t.Errorf("the second: got %d bytes, %v", n, err)
		}
		second.Close()
	}()
	runtime.GC()
	if largeDecoder.Value() != nil {
		t.Error("the decoder is kept that nobody uses")
	}
}

// TestTheWaitEndsWithItsContext: nobody who is told to stop waits for a window.
func TestTheWaitEndsWithItsContext(t *testing.T) {
	frame := wideFrame(t)
	defer open(t, frame).Close()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	r := NewReader(ctx, bytes.NewReader(frame), most)
	defer r.Close()
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}
