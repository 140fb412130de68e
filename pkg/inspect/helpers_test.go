package inspect

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// entry is a tensor of a file that a test makes.
type entry struct {
	name, dtype string
	shape       []int64
}

func (e entry) bytes() int64 {
	n := map[string]int64{"F32": 4, "I64": 8, "F64": 8, "BF16": 2, "F16": 2, "U8": 1, "BOOL": 1, "F8_E4M3": 1}[e.dtype]
	for _, d := range e.shape {
		n *= d
	}
	return n
}

// safetensorsOf writes a file whose header is padded to pad bytes. Its data are
// the bytes 0, 1, 2 … modulo 251.
func safetensorsOf(pad int, entries ...entry) []byte {
	head, size := headOf(pad, entries...)
	return append(head, pattern(size)...)
}

// headOf writes the header alone, and returns the size of the data.
func headOf(pad int, entries ...entry) (head []byte, size int64) {
	var parts []string
	off := int64(0)
	for _, e := range entries {
		shape := strings.ReplaceAll(fmt.Sprint(e.shape), " ", ",")
		parts = append(parts, fmt.Sprintf(`%q:{"dtype":%q,"shape":%s,"data_offsets":[%d,%d]}`, e.name, e.dtype, shape, off, off+e.bytes()))
		off += e.bytes()
	}
	header := "{" + strings.Join(parts, ",") + "}"
	header += strings.Repeat(" ", max(0, pad-len(header)))
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(b, header...), off
}

func pattern(n int64) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i % 251)
	}
	return b
}

// asked is a source that remembers which ranges it was asked for, and whose
// members may be larger than memory.
type asked struct {
	carton.Source
	large map[string]int64 // sizes of members that go on with zeros

	mu      sync.Mutex
	ranges  []string // "PATH OFF+N"
	opens   []string
	read    int64 // bytes
	now     int
	most    int // ranges that were open at once
	barrier func()
}

func (a *asked) Members(ctx context.Context) ([]carton.Member, error) {
	members, err := a.Source.Members(ctx)
	for i := range members {
		if size, ok := a.large[members[i].Path]; ok {
			members[i].Size = size
		}
	}
	return members, err
}

func (a *asked) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	a.mu.Lock()
	a.opens = append(a.opens, path)
	a.mu.Unlock()
	r, err := a.Source.Open(ctx, path)
	return a.count(r, err)
}

func (a *asked) OpenRange(ctx context.Context, path string, off, n int64) (io.ReadCloser, error) {
	a.mu.Lock()
	a.ranges = append(a.ranges, fmt.Sprintf("%s %d+%d", path, off, n))
	a.mu.Unlock()
	if a.barrier != nil {
		a.barrier()
	}
	if size, ok := a.large[path]; ok {
		b, err := carton.ReadMember(ctx, a.Source, path, 1<<30)
		if err != nil {
			return nil, err
		}
		all := io.MultiReader(bytes.NewReader(b), cartontest.Zeros(size-int64(len(b))).Open())
		if _, err := io.CopyN(io.Discard, all, off); err != nil {
			return nil, err
		}
		return a.count(io.NopCloser(io.LimitReader(all, n)), nil)
	}
	r, err := a.Source.OpenRange(ctx, path, off, n)
	return a.count(r, err)
}

func (a *asked) count(r io.ReadCloser, err error) (io.ReadCloser, error) {
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now++
	a.most = max(a.most, a.now)
	return &countedReader{ReadCloser: r, of: a}, nil
}

type countedReader struct {
	io.ReadCloser
	of   *asked
	once sync.Once
}

func (c *countedReader) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.read += int64(n)
	return n, err
}

func (c *countedReader) Close() error {
	c.once.Do(func() {
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		c.of.now--
	})
	return c.ReadCloser.Close()
}

// counting makes a source of files that counts. When the test ends nothing may
// be open.
func counting(t *testing.T, src carton.Source) *asked {
	t.Helper()
	a := &asked{Source: src}
	t.Cleanup(func() {
		if a.now != 0 {
			t.Errorf("%d readers are open at the end", a.now)
		}
	})
	return a
}

// dear makes members that can only be read forward.
func dear(paths ...string) cartontest.Option {
	return cartontest.WithPlace(carton.PlaceCompressed, paths...)
}

// shown writes tensors one a line.
func shown(tensors []Tensor) string {
	var b strings.Builder
	for _, t := range tensors {
		fmt.Fprintf(&b, "%s %s %v %d %s", t.Name, t.DType, t.Shape, t.Bytes, t.Member)
		if t.Model != "" {
			b.WriteString(" " + t.Model)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func tensorsOf(t *testing.T, src carton.Source, opts Options) ([]Tensor, []Note) {
	t.Helper()
	tensors, notes, err := Tensors(t.Context(), src, opts)
	if err != nil {
		t.Fatal(err)
	}
	return tensors, notes
}

// elements reads a tensor's.
func elements(t *testing.T, src carton.Source, tensor *Tensor) ([]byte, bool) {
	t.Helper()
	r, verified, err := Open(t.Context(), src, tensor)
	if err != nil {
		t.Fatalf("%s: %v", tensor.Name, err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("%s: %v", tensor.Name, err)
	}
	return b, verified
}

func noteText(notes []Note) string {
	var b strings.Builder
	for _, n := range notes {
		b.WriteString(n.Member + ": " + n.Text + "\n")
	}
	return b.String()
}

// failingRange fails in the middle of every range.
type failingRange struct {
	carton.Source
	place carton.Place
	err   error
}

func (f *failingRange) Members(ctx context.Context) ([]carton.Member, error) {
	members, err := f.Source.Members(ctx)
	for i := range members {
		members[i].Place = f.place
	}
	return members, err
}

func (f *failingRange) OpenRange(ctx context.Context, path string, off, n int64) (io.ReadCloser, error) {
	r, err := f.Source.OpenRange(ctx, path, off, n)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(cartontest.FailAfter(r, 10, f.err)), nil
}

// lying gives another content in ranges.
type lying struct {
	carton.Source
	lie []byte
}

func (l *lying) OpenRange(_ context.Context, _ string, off, n int64) (io.ReadCloser, error) {
	return io.NopCloser(io.NewSectionReader(bytes.NewReader(l.lie), off, n)), nil
}

// noErr compares notes by what they say.
var noErr = cmpopts.IgnoreFields(Note{}, "Err")
