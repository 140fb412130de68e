package convert

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/carton-oci/carton-oci/internal/cartontest"
)

// manyFiles is a carton whose code is one bundle of n files.
func manyFiles(n int) *cartontest.Source {
	rnd := rand.New(rand.NewPCG(3, 4))
	files := map[string][]byte{}
	for i := range n {
		b := make([]byte, rnd.IntN(3000))
		for j := range b {
			b[j] = byte(rnd.Uint32() >> 3)
		}
		files[fmt.Sprintf("model/%d/%d.py", i%10, i)] = b
	}
	return cartontest.New(files, nil)
}

func TestABundleIsReadOnce(t *testing.T) {
	for _, c := range []Compression{CompressNone, CompressZstd, CompressGzip} {
		t.Run(string(c), func(t *testing.T) {
			s, desc, a := pushed(t, manyFiles(200), Options{Compress: c})
			src := opened(t, s, desc, OpenOptions{})
			members, err := src.Members(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			s.reset()
			for _, m := range members[1:] { // not carton.toml
				content(t, src, m.Path)
			}
			if len(s.requests) != 1 || s.sent != a.Layers[2].Size {
				t.Errorf("took %d requests and %d bytes, want 1 and %d", len(s.requests), s.sent, a.Layers[2].Size)
			}
		})
	}
}

func TestABundleIsReadInAnyOrder(t *testing.T) {
	for _, c := range []Compression{CompressNone, CompressZstd} {
		want := manyFiles(100)
		s, desc, _ := pushed(t, manyFiles(100), Options{Compress: c})
		src := opened(t, s, desc, OpenOptions{})
		members, _ := src.Members(t.Context())
		rand.New(rand.NewPCG(5, 6)).Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		for _, m := range members {
			if content(t, src, m.Path) != content(t, want, m.Path) {
				t.Errorf("%s: content differs", m.Path)
			}
		}
	}
}

// What lies far ahead in an uncompressed tar is asked for, not read up to.
func TestFarMembersAreAskedFor(t *testing.T) {
	src := cartontest.New(map[string][]byte{"model/a.py": []byte("a"), "model/z.py": []byte("z")}, nil,
		cartontest.WithContent("model/m.py", cartontest.Zeros(10<<20)))
	s, desc, _ := pushed(t, src, Options{BundleBelow: 1 << 30})
	got := opened(t, s, desc, OpenOptions{})
	s.reset()
	content(t, got, "model/a.py")
	content(t, got, "model/z.py")
	if len(s.requests) != 2 || s.sent > 10_000 {
		t.Errorf("took %d requests and %d bytes, want 2 and little", len(s.requests), s.sent)
	}
}

func TestABrokenStreamIsNotKept(t *testing.T) {
	broken := errors.New("broken")
	s, desc, _ := pushed(t, manyFiles(100), Options{})
	src := opened(t, s, desc, OpenOptions{})
	members, _ := src.Members(t.Context())
	fail := true
	s.wrap = func(_ digest.Digest, r io.Reader) io.Reader {
		if fail {
			return cartontest.FailAfter(r, 9000, broken)
		}
		return r
	}
	failed := 0
	for _, m := range members[1:] {
		r, err := src.Open(t.Context(), m.Path)
		if err == nil {
			_, err = io.Copy(io.Discard, r)
			r.Close()
		}
		if err != nil {
			if !errors.Is(err, broken) || !strings.Contains(err.Error(), m.Path) {
				t.Fatalf("got %v, want the broken connection and %s", err, m.Path)
			}
			failed++
			fail = false
			content(t, src, m.Path) // another attempt does better
		}
	}
	if failed != 1 {
		t.Errorf("failed %d times, want once", failed)
	}
}

func TestContextsEndTheirOwnReadersOnly(t *testing.T) {
	s, desc, _ := pushed(t, manyFiles(100), Options{})
	src := opened(t, s, desc, OpenOptions{})
	members, _ := src.Members(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	r, err := src.Open(ctx, members[1].Path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Fatal(err)
	}
	r.Close()
	cancel()
	s.reset()
	content(t, src, members[2].Path)
	if len(s.requests) != 0 {
		t.Error("a stream ended with the context of who opened it first")
	}

	ctx, cancel = context.WithCancel(t.Context())
	r, err = src.Open(ctx, members[3].Path)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.Copy(io.Discard, r); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want canceled", err)
	}
	r.Close()
	content(t, src, members[4].Path)
	if _, err := src.Open(ctx, members[4].Path); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want canceled", err)
	}
}

func TestCloseEndsReaders(t *testing.T) {
	for _, opts := range []Options{{}, {BundleBelow: 10_000}, {BundleBelow: 10_000, Compress: CompressGzip}} {
		s, desc, _ := pushed(t, kinds(), opts)
		src := opened(t, s, desc, OpenOptions{})
		r, err := src.Open(t.Context(), "model/weights-1.bin")
		if err != nil {
			t.Fatal(err)
		}
		if err := src.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, r); err == nil {
			t.Error("a reader outlives its source")
		}
		r.Close()
		if _, err := src.Open(t.Context(), "model/config.json"); err == nil {
			t.Error("a closed source opens members")
		}
		if err := src.Close(); err != nil {
			t.Errorf("closed twice: %v", err)
		}
	}
}

func TestFewStreamsWait(t *testing.T) {
	files := map[string][]byte{}
	var want []string
	for i := range 40 {
		path := fmt.Sprintf("model/%02d.bin", i)
		files[path] = []byte(path)
		want = append(want, path)
	}
	s, desc, _ := pushed(t, cartontest.New(files, nil), Options{Layers: FormTar})
	src := opened(t, s, desc, OpenOptions{})
	for _, path := range want {
		if got := content(t, src, path); got != path {
			t.Errorf("%s: got %q", path, got)
		}
	}
	if s.open > maxParked {
		t.Errorf("%d bodies are open, want at most %d", s.open, maxParked)
	}
}

func TestManyReadersAtOnce(t *testing.T) {
	want := manyFiles(60)
	for _, c := range []Compression{CompressNone, CompressZstd} {
		s, desc, _ := pushed(t, manyFiles(60), Options{Compress: c})
		src := opened(t, s, desc, OpenOptions{})
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				entries := slices.Clone(want.Manifest().Entries())
				rand.New(rand.NewPCG(uint64(i), 1)).Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
				for _, e := range entries {
					r, err := src.Open(t.Context(), e.Path)
					if err != nil {
						t.Error(err)
						return
					}
					if _, err := io.Copy(io.Discard, r); err != nil {
						t.Error(err)
					}
					r.Close()
				}
			})
		}
		wg.Wait()
	}
}
