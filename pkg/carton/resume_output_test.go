package carton_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/progress"
	"github.com/google/go-cmp/cmp"
)

const mib = 1 << 20

// noise makes bytes that are a function of seed.
func noise(seed byte, size int) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

// someRanges is a carton of which an earlier run can have brought a part.
func someRanges(h cartontest.RangeHook) *cartontest.Source {
	return cartontest.New(map[string][]byte{
		"model/a": noise(1, 5*mib+3), "model/sub/b": noise(2, 2*mib), "model/c": []byte("c"), "misc/d": nil,
	}, map[string]string{"model/l": "a"}, cartontest.WithRanges(h))
}

// outputs are the two ways to write a carton.
var outputs = outputsOver(0)

type writeOutput = func(ctx context.Context, name string, src carton.Source, watch progress.Func, resumed func(int64)) error

// outputsOver is outputs, over a number of connections.
func outputsOver(n int) map[string]writeOutput {
	return map[string]writeOutput{
		"m.carton": func(ctx context.Context, name string, src carton.Source, watch progress.Func, resumed func(int64)) error {
			return carton.Assemble(ctx, name, src, carton.AssembleOptions{Replace: true, Concurrency: n, Progress: watch, Resumed: resumed})
		},
		"m": func(ctx context.Context, name string, src carton.Source, watch progress.Func, resumed func(int64)) error {
			return carton.Extract(ctx, name, src, carton.ExtractOptions{Replace: true, Concurrency: n, Progress: watch, Resumed: resumed})
		},
	}
}

// leave writes an output until so many bytes have come through ranges, one after the
// other, and then fails with err.
func leave(t *testing.T, base, name string, bytes int64, err error) error {
	t.Helper()
	var left atomic.Int64
	left.Store(bytes)
	turn := make(chan struct{}, 1) // one range after another, or all of them would be begun and none through
	src := someRanges(func(ctx context.Context, _ string, _, _ int64, r io.Reader) (io.Reader, error) {
		mine := false
		return readerFunc(func(b []byte) (int, error) {
			if !mine {
				select {
				case turn <- struct{}{}:
					mine = true
				case <-ctx.Done():
					return 0, ctx.Err()
				}
			}
			n, rerr := r.Read(b)
			if left.Add(-int64(n)) < 0 {
				n, rerr = 0, err
			}
			if rerr != nil {
				mine = false
				<-turn
			}
			return n, rerr
		}), nil
	})
	got := outputsOver(1)[base](t.Context(), name, src, nil, nil)
	if !errors.Is(got, err) {
		t.Fatalf("got %v, want %v", got, err)
	}
	return got
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// counted counts what comes through ranges.
func counted(n *atomic.Int64) cartontest.RangeHook {
	return func(_ context.Context, _ string, _, _ int64, r io.Reader) (io.Reader, error) {
		return readerFunc(func(b []byte) (int, error) {
			k, err := r.Read(b)
			n.Add(int64(k))
			return k, err
		}), nil
	}
}

// After a broken link the same call goes on, and the output is the same.
func TestWritersGoOn(t *testing.T) {
	cut := errors.New("the link is broken")
	for base, write := range outputs {
		dir := t.TempDir()
		name := filepath.Join(dir, base)
		err := leave(t, base, name, 5*mib, cut)
		hints := fmt.Sprint(hint.Of(err))
		if !strings.Contains(hints, "run it again to go on: ") || !strings.Contains(hints, " of 7.3 MB are there ("+name+".partial)") {
			t.Errorf("%s: hints %q", base, hints)
		}
		var came atomic.Int64
		var resumed, told int64
		err = write(t.Context(), name, someRanges(counted(&came)), func(e progress.Event) {
			if e.State == progress.Resumed {
				atomic.AddInt64(&told, e.Done)
			}
		}, func(n int64) { resumed = n })
		if err != nil {
			t.Fatal(err)
		}
		sameCarton(t, name, someRanges(nil))
		if total := int64(7*mib + 3 + 1 + 197); resumed < mib || resumed != told || came.Load()+resumed != total {
			t.Errorf("%s: %d bytes came, %d were used (%d told), want %d together", base, came.Load(), resumed, told, total)
		}
		want := []string{base}
		if base == "m" {
			want = []string{"m/MANIFEST", "m/carton.toml", "m/misc/d", "m/model/a", "m/model/c", "m/model/l -> a", "m/model/sub/b"}
		}
		if diff := cmp.Diff(want, filesIn(t, dir)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", base, diff)
		}
	}
}

// What is wrong with the content is wrong the next time; and less than a MiB is
// not worth a file. Then nothing is left, and nobody is told to try again.
func TestNothingIsLeftWhereThatIsNoUse(t *testing.T) {
	cut := errors.New("the link is broken")
	for base, write := range outputs {
		for what, err := range map[string]error{"little": cut, "wrong content": carton.ErrChecksum, "the format": &carton.Error{Kind: carton.ErrFormat}} {
			dir := t.TempDir()
			n := int64(5 * mib)
			if what == "little" {
				n = mib / 2
			}
			got := leave(t, base, filepath.Join(dir, base), n, err)
			onlyFile(t, dir, "")
			if strings.Contains(fmt.Sprint(hint.Of(got)), "run it again") {
				t.Errorf("%s, %s: hints %q", base, what, hint.Of(got))
			}
		}
		// Bytes that only the hash shows to be wrong.
		dir := t.TempDir()
		src := someRanges(func(_ context.Context, path string, _, n int64, r io.Reader) (io.Reader, error) {
			if path == "model/a" {
				return bytes.NewReader(make([]byte, n)), nil
			}
			return r, nil
		})
		err := write(t.Context(), filepath.Join(dir, base), src, nil, nil)
		if !errors.Is(err, carton.ErrChecksum) || !strings.Contains(err.Error(), "model/a: got sha256 ") {
			t.Errorf("%s: got %v, want ErrChecksum that names model/a", base, err)
		}
		onlyFile(t, dir, "")
	}
}

// What is found beside an output is repaired or replaced, if a journal says that it
// is ours; else it is refused, and stays.
func TestWritersTrustNothing(t *testing.T) {
	cut := errors.New("the link is broken")
	partial := func(name, path string) string {
		if strings.HasSuffix(name, ".carton") {
			return name + ".partial"
		}
		return filepath.Join(name+".partial", path)
	}
	for what, spoil := range map[string]func(t *testing.T, name string) error{
		"damage": func(_ *testing.T, name string) error {
			return overwrite(partial(name, "model/a"), 70_000, noise(9, 100))
		},
		"a longer file": func(_ *testing.T, name string) error {
			f, err := os.OpenFile(partial(name, "model/a"), os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.Write(noise(8, 20*mib))
			return err
		},
		"a shorter file": func(_ *testing.T, name string) error { return os.Truncate(partial(name, "model/a"), mib/2) },
		"garbage for a journal": func(_ *testing.T, name string) error {
			return os.WriteFile(name+".partial.journal", noise(7, 5000), 0o600)
		},
		"no journal": func(_ *testing.T, name string) error { return os.Remove(name + ".partial.journal") },
		"another carton's": func(t *testing.T, name string) error {
			other := cartontest.New(map[string][]byte{"model/a": noise(5, 6*mib)}, nil)
			dir := t.TempDir()
			if err := carton.Assemble(t.Context(), filepath.Join(dir, "o"), other, carton.AssembleOptions{}); err != nil {
				return err
			}
			b, err := os.ReadFile(filepath.Join(dir, "o"))
			if err != nil {
				return err
			}
			return overwrite(partial(name, "model/a"), 0, b)
		},
	} {
		for base, write := range outputs {
			dir := t.TempDir()
			name := filepath.Join(dir, base)
			leave(t, base, name, 5*mib, cut)
			if err := spoil(t, name); err != nil {
				t.Fatalf("%s, %s: %v", base, what, err)
			}
			var came atomic.Int64
			var resumed int64
			if strings.HasSuffix(what, "journal") {
				before := filesIn(t, dir)
				err := write(t.Context(), name, someRanges(nil), nil, nil)
				if err == nil || !strings.Contains(err.Error(), "was not made by carton-oci") || len(hint.Of(err)) == 0 {
					t.Errorf("%s, %s: got %v, want a refusal with a hint", base, what, err)
				}
				if diff := cmp.Diff(before, filesIn(t, dir)); diff != "" {
					t.Errorf("%s, %s: %s", base, what, diff)
				}
				continue
			}
			if err := write(t.Context(), name, someRanges(counted(&came)), nil, func(n int64) { resumed = n }); err != nil {
				t.Fatalf("%s, %s: %v", base, what, err)
			}
			sameCarton(t, name, someRanges(nil))
			if n := came.Load() + resumed; n != 7*mib+3+1+197 {
				t.Errorf("%s, %s: %d bytes came and %d were used", base, what, came.Load(), resumed)
			}
		}
	}
}

func overwrite(name string, off int64, b []byte) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt(b, off)
	return err
}

// A choice of members, or a thin carton, is another output than the whole.
func TestAnotherChoiceBeginsAnew(t *testing.T) {
	cut := errors.New("the link is broken")
	dir := t.TempDir()
	name := filepath.Join(dir, "m")
	leave(t, "m", name, 5*mib, cut)
	resumed := int64(-1)
	opts := carton.ExtractOptions{Folder: "model", Resumed: func(n int64) { resumed = n }}
	if err := carton.Extract(t.Context(), name, someRanges(nil), opts); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"m/a", "m/c", "m/l -> a", "m/sub/b"}, filesIn(t, dir)); diff != "" || resumed != 0 {
		t.Errorf("%d bytes were used; files (-want +got):\n%s", resumed, diff)
	}
	leave(t, "m.carton", name+".carton", 5*mib, cut)
	src := someRanges(nil)
	e, _ := src.Manifest().Lookup("model/a")
	links := &carton.Links{URLs: map[string][]string{e.Hash: {"https://example.com/a"}}}
	if err := carton.Assemble(t.Context(), name+".carton", src, carton.AssembleOptions{Thin: links, Resumed: func(n int64) { resumed = n }}); err != nil {
		t.Fatal(err)
	}
	if resumed != 0 {
		t.Errorf("%d bytes were used", resumed)
	}
}

// A stored member whose bytes have the right hash and a wrong CRC is refused, by
// whatever ranges it was read.
func TestRangesAreHeldAgainstTheZipsCRC(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "m.carton")
	if err := carton.Assemble(t.Context(), name, someRanges(nil), carton.AssembleOptions{}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	// The CRC of model/a lies in its two headers.
	crc := crcBytes(noise(1, 5*mib+3))
	if n := bytes.Count(b, crc); n != 2 {
		t.Fatalf("%d places hold the CRC, want 2", n)
	}
	b = bytes.ReplaceAll(b, crc, []byte{1, 2, 3, 4})
	src, err := carton.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	err = carton.Assemble(t.Context(), filepath.Join(dir, "n"), src, carton.AssembleOptions{})
	if !errors.Is(err, carton.ErrChecksum) || !strings.Contains(err.Error(), "model/a: got CRC ") {
		t.Errorf("got %v, want ErrChecksum about the CRC of model/a", err)
	}
}

func crcBytes(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(b))
}
