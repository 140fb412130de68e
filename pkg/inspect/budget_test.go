package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/semaphore"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
)

func TestABudgetGrowsWhileNobodyHasTheRest(t *testing.T) {
	memory := semaphore.NewWeighted(headersBytes)
	s, err := takeBudget(t.Context(), memory)
	if err != nil {
		t.Fatal(err)
	}
	if !s.enough(smallHeader) || s.bytes != smallBudget {
		t.Errorf("a small header: got %d bytes, want %d", s.bytes, smallBudget)
	}
	// Of a second one the same visit keeps what the first said.
	if !s.enough(1) || s.bytes != smallBudget+headerGrows {
		t.Errorf("a second: got %d bytes", s.bytes)
	}
	if !s.enough(1<<40) || s.bytes != headersBytes {
		t.Errorf("a header larger than all: got %d bytes", s.bytes)
	}
	s.release()

	other, err := takeBudget(t.Context(), memory)
	if err != nil {
		t.Fatal(err)
	}
	if s, err = takeBudget(t.Context(), memory); err != nil {
		t.Fatal(err)
	}
	if s.enough(headersBytes) {
		t.Error("got all, though another has a part of it")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.all(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want an end of waiting", err)
	}
	s.release() // of nothing
	other.release()
	if !memory.TryAcquire(headersBytes) {
		t.Error("something was not given back")
	}
}

// wide is a header of n bytes.
func wide(n int, name string) []byte { return safetensorsOf(n, entry{name, "U8", []int64{1}}) }

// reading counts the members that are read behind their first bytes at once.
type reading struct {
	carton.Source
	behind    int64 // bytes
	now, most atomic.Int64
	opens     atomic.Int64
}

func (r *reading) OpenRange(ctx context.Context, path string, off, n int64) (io.ReadCloser, error) {
	r.opens.Add(1)
	in, err := r.Source.OpenRange(ctx, path, off, n)
	return &readingOne{ReadCloser: in, of: r, at: off}, err
}

type readingOne struct {
	io.ReadCloser
	of      *reading
	at      int64
	counted bool
	once    sync.Once
}

func (o *readingOne) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	if o.at += int64(n); o.at > o.of.behind && !o.counted {
		o.counted = true
		now := o.of.now.Add(1)
		for most := o.of.most.Load(); now > most && !o.of.most.CompareAndSwap(most, now); most = o.of.most.Load() {
		}
	}
	return n, err
}

func (o *readingOne) Close() error {
	o.once.Do(func() {
		if o.counted {
			o.of.now.Add(-1)
		}
	})
	return o.ReadCloser.Close()
}

// TestLargeHeadersAreReadOneAfterAnother: where ranges are cheap and where they
// are dear. What was opened to learn how long the header is is closed while
// another has the memory.
func TestLargeHeadersAreReadOneAfterAnother(t *testing.T) {
	const large = headersBytes/headerGrows/2 + 1 // two of them are too many
	for _, isDear := range []bool{false, true} {
		files := map[string][]byte{}
		var paths []string
		for i := range 6 {
			path := fmt.Sprintf("model/%d.safetensors", i)
			files[path], paths = wide(large, fmt.Sprint("t", i)), append(paths, path)
		}
		var opts []cartontest.Option
		if isDear {
			opts = append(opts, dear(paths...))
		}
		src := &reading{Source: cartontest.New(files, nil, opts...), behind: headerAtOnce}
		tensors, notes := tensorsOf(t, src, Options{})
		if len(tensors) != 6 || len(notes) != 0 {
			t.Errorf("dear %v: got %d tensors, %s", isDear, len(tensors), noteText(notes))
		}
		if got := src.most.Load(); got != 1 {
			t.Errorf("dear %v: %d headers were read at once, want 1", isDear, got)
		}
		if got := src.opens.Load(); got > 12 {
			t.Errorf("dear %v: opened %d times, want at most two a file", isDear, got)
		}
	}
}

// many returns a file of n tensors whose names are so long.
func many(n, name int, prefix string) []byte {
	entries := make([]entry, n)
	for i := range entries {
		entries[i] = entry{fmt.Sprintf("%s%0*d", prefix, name, i), "U8", []int64{0}}
	}
	return safetensorsOf(0, entries...)
}

// TestAListingIsBounded: what one file has too much of is an error, a search and
// the facts keep little of it.
func TestAListingIsBounded(t *testing.T) {
	testenv.Heavy(t)
	files := map[string][]byte{}
	const n, each = 12_000, 900 // some 11 MB of names a file
	for i := range 8 {
		files[fmt.Sprintf("model/%d.safetensors", i)] = many(n, each, fmt.Sprintf("m%d.", i))
	}
	src := cartontest.New(files, nil)
	_, _, err := Tensors(t.Context(), src, Options{})
	if !errors.Is(err, carton.ErrLimit) || len(hint.Of(err)) != 1 || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want ErrLimit and a hint", err)
	}
	if tensors, _ := tensorsOf(t, src, Options{Member: "model/3.safetensors"}); len(tensors) != n {
		t.Errorf("got %d tensors of one member, want %d", len(tensors), n)
	}
	name := fmt.Sprintf("m5.%0*d", each, 77)
	if found, _, err := Find(t.Context(), src, name, Options{}); err != nil || found.Member != "model/5.safetensors" {
		t.Errorf("got %v, %v", found, err)
	}
	if _, _, err := Find(t.Context(), src, "none", Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want ErrNotExist", err)
	}
	if facts, err := Describe(t.Context(), src, Options{}); err != nil || facts.Precision != "uint8" || facts.Parameters != 0 {
		t.Errorf("got %+v, %v", facts, err)
	}
}

// TestADiffIsBounded by what differs, not by what is compared.
func TestADiffIsBounded(t *testing.T) {
	testenv.Heavy(t)
	const n, name = 10_000, 900
	of := func(prefix string, more int) carton.Source {
		files := map[string][]byte{}
		for i := range 5 { // each with a content of its own
			files[fmt.Sprintf("model/%d.safetensors", i)] = many(n+more, name, fmt.Sprint(prefix, i, "."))
		}
		return cartontest.New(files, nil)
	}
	d, err := Diff(t.Context(), of("a", 0), of("a", 1), Options{})
	if err != nil || len(d.Notes) != 0 || len(d.Changed) != 5 {
		t.Fatalf("got %v, %d changes, %s", err, len(d.Changed), noteText(d.Notes))
	}
	for _, c := range d.Changed {
		if !c.Compared || len(c.Tensors) != 1 || c.Tensors[0].Kind != TensorAdded {
			t.Errorf("%s: got %d changes, want one", c.A.Path, len(c.Tensors))
		}
	}
	if d, err = Diff(t.Context(), of("a", 0), of("b", 0), Options{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range d.Changed {
		if c.Compared || c.Tensors != nil {
			t.Errorf("%s: compared, with %d changes", c.A.Path, len(c.Tensors))
		}
	}
	if len(d.Notes) != 5 || !strings.Contains(d.Notes[0].Text, "is not compared: ") {
		t.Errorf("got the notes\n%s", noteText(d.Notes))
	}
}

// Of tensors with one name and model the last counts, wherever they stand.
func TestTensorsOfOneName(t *testing.T) {
	of := func(tensors ...modelfile.Tensor) *content {
		return &content{file: &file{}, Content: modelfile.Content{Tensors: tensors}}
	}
	a := of(modelfile.Tensor{Name: "b", Shape: []int64{1}}, modelfile.Tensor{Name: "a", Model: "2"},
		modelfile.Tensor{Name: "b", Shape: []int64{2}}, modelfile.Tensor{Name: "a", Model: "1"})
	b := of(modelfile.Tensor{Name: "b", Shape: []int64{2}}, modelfile.Tensor{Name: "a", Model: "1", DType: "U8"}, modelfile.Tensor{Name: "a", Model: "3"})
	var got []string
	changes, _ := compareTensors(a, b)
	for _, c := range changes {
		got = append(got, fmt.Sprint(c.Kind, " ", eitherOf(c).Name, eitherOf(c).Model))
	}
	if want := "[retyped a1 removed a2 added a3]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
