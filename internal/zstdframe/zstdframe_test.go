package zstdframe_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/carton-oci/carton-oci/internal/zstdframe"
	"github.com/klauspost/compress/zstd"
)

const window = 8 << 20

func compress(t testing.TB, b []byte, options ...zstd.EOption) []byte {
	t.Helper()
	e, err := zstd.NewWriter(nil, options...)
	if err != nil {
		t.Fatal(err)
	}
	return e.EncodeAll(b, nil)
}

func decode(b []byte) ([]byte, error) {
	r := zstdframe.NewReader(context.Background(), bytes.NewReader(b), window)
	defer r.Close()
	return io.ReadAll(r)
}

func TestOneFrame(t *testing.T) {
	text := []byte(strings.Repeat("one frame and nothing else. ", 40_000))
	for name, content := range map[string][]byte{
		"empty": {}, "one byte": {7}, "many blocks": text, "one repeated byte": make([]byte, 1<<20),
	} {
		for option, options := range map[string][]zstd.EOption{
			"checksum":     nil,
			"no checksum":  {zstd.WithEncoderCRC(false)},
			"zero frames":  {zstd.WithZeroFrames(true)},
			"fast":         {zstd.WithEncoderLevel(zstd.SpeedFastest)},
			"small window": {zstd.WithWindowSize(1 << 10)},
		} {
			frame := compress(t, content, options...)
			if len(frame) == 0 {
				continue // without WithZeroFrames the encoder writes nothing for nothing
			}
			got, err := decode(frame)
			if err != nil || !bytes.Equal(got, content) {
				t.Errorf("%s, %s: got %d bytes, %v; want %d", name, option, len(got), err, len(content))
			}
			one := zstdframe.NewReader(t.Context(), iotest.OneByteReader(bytes.NewReader(frame)), window)
			if got, err = io.ReadAll(one); err != nil || !bytes.Equal(got, content) {
				t.Errorf("%s, %s, by the byte: got %d bytes, %v; want %d", name, option, len(got), err, len(content))
			}
		}
	}
}

func TestAnythingElseIsRefused(t *testing.T) {
	frame := compress(t, []byte("content"))
	skippable := append([]byte{0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0}, "abc"...)
	for name, c := range map[string]struct {
		in   []byte
		want error
	}{
		"empty input":           {nil, io.ErrUnexpectedEOF},
		"no frame":              {[]byte("this is no frame at all"), zstdframe.ErrNoFrame},
		"skippable frame first": {append(bytes.Clone(skippable), frame...), zstdframe.ErrNoFrame},
		"skippable frame last":  {append(bytes.Clone(frame), skippable...), zstdframe.ErrTrailing},
		"two frames":            {append(bytes.Clone(frame), frame...), zstdframe.ErrTrailing},
		"a byte too many":       {append(bytes.Clone(frame), 0), zstdframe.ErrTrailing},
		"a byte too few":        {frame[:len(frame)-1], io.ErrUnexpectedEOF},
		"header only":           {frame[:6], io.ErrUnexpectedEOF},
		"large window":          {compress(t, make([]byte, 40<<20), zstd.WithWindowSize(16<<20), zstd.WithSingleSegment(false)), zstdframe.ErrWindow},
	} {
		if got, err := decode(c.in); !errors.Is(err, c.want) {
			t.Errorf("%s: got %d bytes, %v; want %v", name, len(got), err, c.want)
		}
	}
}

func TestTruncatedAnywhere(t *testing.T) {
	frame := compress(t, []byte(strings.Repeat("0123456789abcdef", 20_000)))
	for n := range len(frame) {
		if _, err := decode(frame[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes decoded without an error", n, len(frame))
		}
	}
}

func TestTheReadersErrorComesThrough(t *testing.T) {
	frame := compress(t, []byte(strings.Repeat("0123456789abcdef", 20_000)))
	broken := errors.New("connection reset")
	for n := range len(frame) {
		r := zstdframe.NewReader(t.Context(), io.MultiReader(bytes.NewReader(frame[:n]), iotest.ErrReader(broken)), window)
		_, err := io.ReadAll(r)
		if !errors.Is(err, broken) {
			t.Fatalf("after %d bytes: got %v, want %v", n, err, broken)
		}
	}
}

// FuzzNewReader: what decodes as one frame must decode to the same bytes with
// the library's own reader.
func FuzzNewReader(f *testing.F) {
	f.Add(compress(f, []byte("content")))
	f.Add(compress(f, make([]byte, 300_000), zstd.WithEncoderCRC(false)))
	f.Add([]byte("\x28\xb5\x2f\xfd"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := zstdframe.NewReader(t.Context(), bytes.NewReader(b), 1<<20)
		defer r.Close()
		got, err := io.ReadAll(io.LimitReader(r, 4<<20))
		if err != nil || len(got) == 4<<20 {
			return
		}
		d, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1))
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		want, err := io.ReadAll(d)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("got %d bytes, the library %d, %v", len(got), len(want), err)
		}
	})
}
