package carton_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// ranges is the carton of someRanges, with other options.
func ranges(opts ...cartontest.Option) *cartontest.Source {
	return cartontest.New(map[string][]byte{
		"model/a": noise(1, 5*mib+3), "model/sub/b": noise(2, 2*mib), "model/c": []byte("c"), "misc/d": nil,
	}, map[string]string{"model/l": "a"}, opts...)
}

// A run that fails, however and whenever it does, leaves what the run before has
// brought, and says so.
func TestAPartialStays(t *testing.T) {
	down := errors.New("the host is down")
	never := cartontest.WithRanges(func(context.Context, string, int64, int64, io.Reader) (io.Reader, error) { return nil, down })
	fails := cartontest.WithOpen(func(string, int, io.Reader) (io.Reader, error) { return nil, down })
	page := func(path string, n int64, r io.Reader) io.Reader {
		if path == "model/a" {
			return bytes.NewReader(bytes.Repeat([]byte("no"), int(n/2)))
		}
		return r
	}
	for name, c := range map[string]struct {
		src    *cartontest.Source
		cancel bool
		want   error
		lost   int64 // of what had come
	}{
		"the members can't be listed": {src: ranges(cartontest.WithMembersError(down)), want: down},
		"what lists them is wrong":    {src: ranges(cartontest.WithMembersError(&carton.Error{Kind: carton.ErrFormat})), want: carton.ErrFormat},
		"no member answers":           {src: ranges(never, fails), want: down},
		"a host tells no size": {
			src: ranges(never, fails, cartontest.WithUnknownSize("model/a"), cartontest.WithPlace(carton.PlaceLinked, "model/a")),
		},
		"a host tells another size": {
			src: ranges(never, fails, cartontest.WithSize("model/a", 512), cartontest.WithPlace(carton.PlaceLinked, "model/a")),
		},
		"an error page takes a member's place": {
			src: ranges(cartontest.WithSize("model/a", 512), cartontest.WithPlace(carton.PlaceLinked, "model/a"),
				cartontest.WithRanges(func(_ context.Context, path string, _, n int64, r io.Reader) (io.Reader, error) {
					return page(path, n, r), nil
				}),
				cartontest.WithOpen(func(path string, _ int, r io.Reader) (io.Reader, error) {
					return page(path, 512, r), nil
				})),
			lost: mib,
		},
		"it is interrupted at once": {src: ranges(), cancel: true, want: context.Canceled},
		"another model is asked for": {
			src: cartontest.New(map[string][]byte{"model/x": noise(9, 3*mib)}, nil, never, fails), want: down,
		},
	} {
		for base, write := range outputs {
			t.Run(name+"/"+base, func(t *testing.T) {
				dir := t.TempDir()
				out := filepath.Join(dir, base)
				leave(t, base, out, 5*mib, errors.New("the link is broken"))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.cancel {
					cancel()
				}
				err := write(ctx, out, c.src, nil, nil)
				if err == nil || c.want != nil && !errors.Is(err, c.want) {
					t.Errorf("got %v, want %v", err, c.want)
				}
				if !strings.Contains(fmt.Sprint(hint.Of(err)), base+".partial") {
					t.Errorf("hints %q", hint.Of(err))
				}
				var came atomic.Int64
				var resumed int64
				if err := write(t.Context(), out, someRanges(counted(&came)), nil, func(n int64) { resumed = n }); err != nil {
					t.Fatal(err)
				}
				sameCarton(t, out, someRanges(nil))
				// Of 5 MiB the last block may not be whole.
				if total := int64(7*mib + 4 + 197); resumed < 4*mib-c.lost || came.Load()+resumed != total {
					t.Errorf("%d bytes came and %d were used, want %d together", came.Load(), resumed, total)
				}
			})
		}
	}
}

// A model that can be had takes the place of another's partial.
func TestAnotherModelTakesThePlace(t *testing.T) {
	for base, write := range outputs {
		dir := t.TempDir()
		out := filepath.Join(dir, base)
		leave(t, base, out, 5*mib, errors.New("the link is broken"))
		src := cartontest.New(map[string][]byte{"model/x": noise(9, 3*mib)}, nil)
		if err := write(t.Context(), out, src, nil, nil); err != nil {
			t.Fatal(err)
		}
		sameCarton(t, out, src)
	}
}

// Bytes that were wrong once are fetched once more, and cost nothing else.
func TestWrongOnce(t *testing.T) {
	for base, write := range outputs {
		var wrong atomic.Int64
		src := ranges(cartontest.WithRanges(func(_ context.Context, path string, off, n int64, r io.Reader) (io.Reader, error) {
			if path == "model/a" && off == 0 && wrong.Add(1) == 1 {
				return bytes.NewReader(make([]byte, n)), nil
			}
			return r, nil
		}))
		out := filepath.Join(t.TempDir(), base)
		if err := write(t.Context(), out, src, nil, nil); err != nil {
			t.Fatal(err)
		}
		sameCarton(t, out, src)
		if wrong.Load() != 2 {
			t.Errorf("%s: the wrong range was asked for %d times, want 2", base, wrong.Load())
		}
	}
}

// An output that can't be put in its place in the end stays partial.
func TestAPartialStaysWhereTheLastStepFails(t *testing.T) {
	for base, write := range outputs {
		dir := t.TempDir()
		out := filepath.Join(dir, base)
		src := ranges(cartontest.WithRanges(func(_ context.Context, path string, off, _ int64, r io.Reader) (io.Reader, error) {
			if path == "model/a" && off == 0 { // somebody makes the output meanwhile
				if base == "m" {
					return r, os.WriteFile(out, []byte("theirs"), 0o600)
				}
				return r, errors.Join(os.Mkdir(out, 0o700), os.WriteFile(filepath.Join(out, "x"), nil, 0o600))
			}
			return r, nil
		}))
		err := write(t.Context(), out, src, nil, nil)
		if err == nil || !strings.Contains(fmt.Sprint(hint.Of(err)), "7.3 MB of 7.3 MB are there") {
			t.Errorf("%s: got %v with hints %q", base, err, hint.Of(err))
		}
		if err := os.RemoveAll(out); err != nil {
			t.Fatal(err)
		}
		var came atomic.Int64
		if err := write(t.Context(), out, someRanges(counted(&came)), nil, nil); err != nil || came.Load() != 0 {
			t.Errorf("%s: %d bytes came again, %v", base, came.Load(), err)
		}
		sameCarton(t, out, src)
	}
}
