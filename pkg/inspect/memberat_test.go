package inspect

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/readahead"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// memberOf returns a member of a carton.
func memberOf(t *testing.T, src carton.Source, path string) carton.Member {
	t.Helper()
	members, err := src.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		if m.Path == path {
			return m
		}
	}
	t.Fatalf("%s is no member", path)
	return carton.Member{}
}

func TestMemberAtReadsWhatIsThere(t *testing.T) {
	b := pattern(3 << 20)
	for name, opts := range map[string][]cartontest.Option{"ranged": nil, "dear": {dear(weights)}} {
		a := counting(t, cartontest.New(map[string][]byte{weights: b}, nil, opts...))
		r := &memberAt{ctx: t.Context(), src: a, member: memberOf(t, a, weights)}
		random := rand.New(rand.NewPCG(1, 2))
		for range 200 {
			off, n := random.IntN(len(b)), random.IntN(200_000)
			p := make([]byte, n)
			got, err := r.ReadAt(p, int64(off))
			want := b[off:min(len(b), off+n)]
			if !bytes.Equal(p[:got], want) || errors.Is(err, io.EOF) != (len(want) < n) || err != nil && !errors.Is(err, io.EOF) {
				t.Fatalf("%s: %d bytes at %d: got %d, %v", name, n, off, got, err)
			}
		}
		if _, err := r.ReadAt(make([]byte, 1), -1); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%s: a negative offset: got %v", name, err)
		}
		if err := r.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if total := r.cache.Kept(); total > readahead.MostKept+readahead.TailBytes {
			t.Errorf("%s: keeps %d bytes, want at most %d", name, total, readahead.MostKept)
		}
	}
}

// Who reads on and on gets more each time, and never asks for what is there.
func TestReadingAheadGrows(t *testing.T) {
	const size = 30 << 20
	a := counting(t, cartontest.New(nil, nil, cartontest.WithContent(weights, cartontest.Zeros(size))))
	r := &memberAt{ctx: t.Context(), src: a, member: memberOf(t, a, weights)}
	n, err := io.Copy(io.Discard, io.NewSectionReader(r, 0, size))
	if n != size || err != nil {
		t.Fatalf("got %d bytes, %v", n, err)
	}
	if a.read != size || len(a.ranges) > 20 {
		t.Errorf("read %d bytes in %d ranges, want %d in few", a.read, len(a.ranges), size)
	}
	before := len(a.ranges)
	if _, err := r.ReadAt(make([]byte, 1<<20), size-1<<20); err != nil || len(a.ranges) != before {
		t.Errorf("asked again for what is kept: %v, %v", a.ranges[before:], err)
	}
}

func TestAMemberThatEndsEarly(t *testing.T) {
	for _, opts := range [][]cartontest.Option{
		{cartontest.WithSize(weights, 300_000)}, {cartontest.WithSize(weights, 300_000), dear(weights)},
	} {
		src := cartontest.New(map[string][]byte{weights: pattern(1000)}, nil, opts...)
		r := &memberAt{ctx: t.Context(), src: src, member: memberOf(t, src, weights)}
		if _, err := r.ReadAt(make([]byte, 10), 0); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("got %v, want io.ErrUnexpectedEOF", err)
		}
		if err := r.Close(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("close: got %v, want what went wrong", err)
		}
	}
}

// One read of more than is kept ends, and reads each byte once.
func TestAReadOfMoreThanIsKept(t *testing.T) {
	b := pattern(readahead.MostKept + 3<<20)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for name, opts := range map[string][]cartontest.Option{"ranged": nil, "dear": {dear(weights)}} {
		for _, off := range []int{0, 1 << 20} {
			a := counting(t, cartontest.New(map[string][]byte{weights: b}, nil, opts...))
			r := &memberAt{ctx: ctx, src: a, member: memberOf(t, a, weights)}
			p := make([]byte, len(b)-off)
			if n, err := r.ReadAt(p, int64(off)); n != len(p) || err != nil || !bytes.Equal(p, b[off:]) {
				t.Errorf("%s from %d: got %d bytes, %v", name, off, n, err)
			}
			if name == "dear" && len(a.ranges) != 1 || a.read > int64(len(b)) {
				t.Errorf("%s from %d: read %d bytes in %d ranges", name, off, a.read, len(a.ranges))
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
