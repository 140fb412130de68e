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
	"sync"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/progress"
	"github.com/google/go-cmp/cmp"
)

func TestAssembleBehindAFailure(t *testing.T) {
	broken := errors.New("broken")
	files := map[string][]byte{
		"model/a": bytes.Repeat([]byte("a"), 1_000_000), "model/b": []byte("b"), "model/c": []byte("c"), // under a MiB: nothing is kept of it
	}
	at := func(path string, f func(io.Reader) io.Reader) cartontest.Option {
		return cartontest.WithOpen(func(p string, _ int, r io.Reader) (io.Reader, error) {
			if p == path {
				return f(r), nil
			}
			return r, nil
		})
	}
	for name, c := range map[string]struct {
		opt  cartontest.Option
		want error
		text string
	}{
		"the source breaks": {
			at("model/a", func(r io.Reader) io.Reader { return cartontest.FailAfter(r, 300_000, broken) }),
			broken, "model/a: broken",
		},
		"a member can't be opened": {
			cartontest.WithOpen(func(string, int, io.Reader) (io.Reader, error) { return nil, broken }),
			broken, ": broken",
		},
		"content of another hash": {
			at("model/b", func(io.Reader) io.Reader { return strings.NewReader("x") }),
			carton.ErrChecksum, "model/b: ",
		},
		"content that ends early": {
			at("model/a", func(r io.Reader) io.Reader { return io.LimitReader(r, 1<<19) }),
			carton.ErrChecksum, "model/a: ",
		},
		"content that goes on": {
			at("model/a", func(r io.Reader) io.Reader { return io.MultiReader(r, strings.NewReader("more")) }),
			carton.ErrChecksum, "model/a: ",
		},
		"a size that is too small": {cartontest.WithSize("model/a", 5), carton.ErrChecksum, "model/a: "},
		"a size that is too large": {cartontest.WithSize("model/a", 2<<20), carton.ErrChecksum, "model/a: "},
		"a size that nobody knows": {cartontest.WithUnknownSize("model/b"), carton.ErrLink, "model/b: "},
		"no members":               {cartontest.WithMembersError(broken), broken, "broken"},
		"a reader that never ends": {
			at("model/c", func(io.Reader) io.Reader { return neverEnding{} }),
			io.ErrNoProgress, "model/c: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			src := cartontest.New(files, nil, c.opt)
			dir := t.TempDir()
			err := carton.Assemble(t.Context(), filepath.Join(dir, "m"), src, carton.AssembleOptions{})
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %v saying %q", err, c.want, c.text)
			}
			onlyFile(t, dir, "")
			if got := src.Unclosed(); got != 0 {
				t.Errorf("%d readers were not closed", got)
			}

			// What was there stays, byte for byte.
			if err := os.WriteFile(filepath.Join(dir, "m"), []byte("old"), 0o644); err != nil {
				t.Fatal(err)
			}
			err = carton.Assemble(t.Context(), filepath.Join(dir, "m"), src, carton.AssembleOptions{Replace: true})
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if got := onlyFile(t, dir, "m"); string(got) != "old" {
				t.Errorf("the old file holds %q", got)
			}
		})
	}
}

type neverEnding struct{}

func (neverEnding) Read([]byte) (int, error) { return 0, nil }

// lying is a source whose Members are not those of its MANIFEST.
type lying struct {
	carton.Source
	change func([]carton.Member) []carton.Member
}

func (l lying) Members(ctx context.Context) ([]carton.Member, error) {
	m, err := l.Source.Members(ctx)
	return l.change(m), err
}

func TestMembersAreHeldAgainstManifest(t *testing.T) {
	src := cartontest.New(map[string][]byte{"model/a": []byte("a"), "model/b": []byte("b")}, map[string]string{"model/l": "a"})
	at := func(i int, f func(*carton.Member)) func([]carton.Member) []carton.Member {
		return func(m []carton.Member) []carton.Member { f(&m[i]); return m }
	}
	for name, c := range map[string]struct {
		change func([]carton.Member) []carton.Member
		want   error
	}{
		"one is missing":         {func(m []carton.Member) []carton.Member { return m[1:] }, carton.ErrFormat},
		"one more":               {func(m []carton.Member) []carton.Member { return append(m, carton.Member{Path: "x"}) }, carton.ErrFormat},
		"one twice":              {func(m []carton.Member) []carton.Member { m[1] = m[2]; return m }, carton.ErrFormat},
		"another hash":           {at(1, func(m *carton.Member) { m.Hash = strings.Repeat("0", 64) }), carton.ErrFormat},
		"traversal":              {at(1, func(m *carton.Member) { m.Path = "../a" }), carton.ErrFormat},
		"a symlink that escapes": {at(3, func(m *carton.Member) { m.Target = "../../etc/passwd" }), carton.ErrInsecurePath},
		"one that loops":         {at(3, func(m *carton.Member) { m.Target = "l" }), carton.ErrInsecurePath},
		"one to another content": {at(3, func(m *carton.Member) { m.Target = "b" }), carton.ErrChecksum},
		"one to nothing":         {at(3, func(m *carton.Member) { m.Target = "c" }), carton.ErrFormat},
	} {
		dir := t.TempDir()
		for verb, err := range map[string]error{
			"Assemble": carton.Assemble(t.Context(), filepath.Join(dir, "m"), lying{src, c.change}, carton.AssembleOptions{}),
			"Extract":  carton.Extract(t.Context(), filepath.Join(dir, "d"), lying{src, c.change}, carton.ExtractOptions{}),
		} {
			if !errors.Is(err, c.want) {
				t.Errorf("%s: %s: got %v, want %v", verb, name, err, c.want)
			}
		}
		onlyFile(t, dir, "")
	}
}

func TestAssembleTriesAgain(t *testing.T) {
	fails := func(times int) cartontest.Option {
		return cartontest.WithOpen(func(path string, before int, r io.Reader) (io.Reader, error) {
			if path != "model/a" || before >= times {
				return r, nil
			}
			if before%2 == 1 {
				return nil, &cartontest.Temporary{Text: "not now"}
			}
			return cartontest.FailAfter(strings.NewReader("wrong"), 5, &cartontest.Temporary{Text: "not now"}), nil
		})
	}
	files := map[string][]byte{"model/a": []byte("right bytes"), "model/b": nil}
	dir := t.TempDir()
	src := cartontest.New(files, nil, fails(2))
	var events []progress.Event
	var mu sync.Mutex
	err := carton.Assemble(t.Context(), filepath.Join(dir, "m"), src, carton.AssembleOptions{Progress: func(e progress.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Name == "model/a" {
			events = append(events, e)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	sameCarton(t, filepath.Join(dir, "m"), cartontest.New(files, nil))
	var states []string
	for _, e := range events {
		states = append(states, e.State.String())
		if (e.State == progress.Retrying) != (e.Err != nil) || e.Total != 11 {
			t.Errorf("event %+v", e)
		}
	}
	want := []string{"started", "retrying", "retrying", "moving", "finished"}
	if diff := cmp.Diff(want, states); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}

	src = cartontest.New(files, nil, fails(3))
	err = carton.Assemble(t.Context(), filepath.Join(dir, "n"), src, carton.AssembleOptions{})
	if err == nil || src.Opens("model/a") != 3 {
		t.Errorf("got %v after %d attempts, want an error after 3", err, src.Opens("model/a"))
	}

	broken := errors.New("for good")
	src = cartontest.New(files, nil, cartontest.WithOpen(func(string, int, io.Reader) (io.Reader, error) { return nil, broken }))
	err = carton.Assemble(t.Context(), filepath.Join(dir, "n"), src, carton.AssembleOptions{Concurrency: 1})
	if got := len(src.Opened()); !errors.Is(err, broken) || got != 1 {
		t.Errorf("got %v after %d attempts, want one", err, got)
	}
	onlyFile(t, dir, "m")
}

// A member that is longer than it should be, and then is right at the second
// attempt, has not touched what lies behind it.
func TestAssembleWritesNothingBeyondAMember(t *testing.T) {
	files := map[string][]byte{"model/a": []byte("a"), "model/b": bytes.Repeat([]byte("b"), 300<<10)}
	src := cartontest.New(files, nil, cartontest.WithOpen(func(path string, before int, r io.Reader) (io.Reader, error) {
		if path == "model/a" && before == 0 {
			return cartontest.FailAfter(bytes.NewReader(make([]byte, 400<<10)), 400<<10, &cartontest.Temporary{Text: "not now"}), nil
		}
		return r, nil
	}))
	name := filepath.Join(t.TempDir(), "m")
	if err := carton.Assemble(t.Context(), name, src, carton.AssembleOptions{Concurrency: 1}); err == nil {
		sameCarton(t, name, src)
	} else if !errors.Is(err, carton.ErrChecksum) {
		t.Errorf("got %v, want ErrChecksum, or none and the right bytes", err)
	}
}

func TestAssembleStopsWhenToldTo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	src := cartontest.New(map[string][]byte{"model/a": make([]byte, 4<<20), "model/b": make([]byte, 3<<20)}, nil)
	dir := t.TempDir()
	err := carton.Assemble(ctx, filepath.Join(dir, "m"), src, carton.AssembleOptions{Progress: func(e progress.Event) {
		if e.State == progress.Moving {
			cancel()
		}
		if e.State == progress.Finished && e.Total > 1<<20 {
			t.Errorf("%s went on to its end", e.Name)
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	onlyFile(t, dir, "")
}

// deaf is a source whose readers don't hear that they are to stop.
type deaf struct{ *cartontest.Source }

func (d deaf) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	return d.Source.Open(context.WithoutCancel(ctx), path)
}

func TestAssembleStopsWhateverTheSourceDoes(t *testing.T) {
	files := map[string][]byte{"model/big": make([]byte, 4<<20)}
	for i := range 100 {
		files[fmt.Sprint("model/", i)] = []byte{byte(i)}
	}
	ctx, cancel := context.WithCancel(t.Context())
	src := cartontest.New(files, nil)
	dir := t.TempDir()
	finished := map[string]bool{}
	err := carton.Assemble(ctx, filepath.Join(dir, "m"), deaf{src}, carton.AssembleOptions{Concurrency: 1, Progress: func(e progress.Event) {
		if e.State == progress.Moving {
			cancel()
		}
		finished[e.Name] = e.State == progress.Finished
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if diff := cmp.Diff(map[string]bool{"model/big": false}, finished); diff != "" {
		t.Errorf("members that were begun, and whether they were finished (-want +got):\n%s", diff)
	}
	if got := src.Opened(); len(got) != 1 {
		t.Errorf("%d members were opened, want 1", len(got))
	}
	onlyFile(t, dir, "")

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	src = cartontest.New(files, nil, cartontest.WithBundle(1, "model/1", "model/2"))
	err = carton.Assemble(cancelled, filepath.Join(dir, "m"), deaf{src}, carton.AssembleOptions{})
	if !errors.Is(err, context.Canceled) || src.Opened() != nil {
		t.Errorf("cancelled before: got %v, and %q opened", err, src.Opened())
	}
}
