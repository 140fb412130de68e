package download_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/download"
	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/progress"
)

const mib = 1 << 20

// memory is a file in memory, of which any part can be written first.
type memory struct {
	mu  sync.Mutex
	b   []byte
	err func(off int64, n int) error // of a write; nil is none
}

func (m *memory) WriteAt(p []byte, off int64) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		if err := m.err(off, len(p)); err != nil {
			return 0, err
		}
	}
	if end := off + int64(len(p)); end > int64(len(m.b)) {
		m.b = append(m.b, make([]byte, end-int64(len(m.b)))...)
	}
	return copy(m.b[off:], p), nil
}

func (m *memory) ReadAt(p []byte, off int64) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if off > int64(len(m.b)) {
		return 0, io.EOF
	}
	n := copy(p, m.b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (m *memory) Truncate(size int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if size < int64(len(m.b)) {
		m.b = m.b[:size]
	} else {
		m.b = append(m.b, make([]byte, size-int64(len(m.b)))...)
	}
	return nil
}

func (m *memory) Close() error                { return nil }
func (m *memory) StartWriteback(off, n int64) {}

// flip damages a byte.
func (m *memory) flip(off int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.b[off] ^= 1
}

// ask is one question to a place.
type ask struct {
	part   int
	off, n int64 // n < 0: all of it, as a stream
}

// place is where parts come from. Its hooks may be nil.
type place struct {
	parts   []download.Part
	content [][]byte
	files   []*memory
	crcs    map[int]uint32
	// opening stands before every answer; reading between an answer and its reader.
	opening func(ctx context.Context, a ask) error
	reading func(ctx context.Context, a ask, r io.Reader) io.Reader
	// whole is what a stream gives in place of the content.
	whole func(part int) io.Reader

	mu    sync.Mutex
	asked []ask
	open  int
	most  int
	given int64 // bytes
	done  []int
}

// content makes bytes that are a function of seed.
func content(seed uint64, size int) []byte {
	b := make([]byte, size)
	var key [32]byte
	key[0], key[1] = byte(seed), byte(seed>>8)
	_, _ = rand.NewChaCha8(key).Read(b)
	return b
}

// newPlace makes parts of the given sizes, all of them ranged.
func newPlace(sizes ...int) *place {
	p := &place{crcs: map[int]uint32{}}
	var off int64
	for i, size := range sizes {
		b := content(uint64(i), size)
		sum := sha256.Sum256(b)
		p.content = append(p.content, b)
		p.files = append(p.files, &memory{})
		p.parts = append(p.parts, download.Part{
			Name: fmt.Sprint("part ", i), Size: int64(size), SHA256: hex.EncodeToString(sum[:]), Offset: off, Ranged: true,
		})
		off += int64(size)
	}
	return p
}

var errWrong = errtext.Content("wrong content")

func (p *place) job() download.Job {
	return download.Job{
		Parts: p.parts,
		Range: func(ctx context.Context, i int, off, n int64) (io.ReadCloser, error) {
			return p.answer(ctx, ask{i, off, n}, bytes.NewReader(p.content[i][off:off+n]))
		},
		Whole: func(ctx context.Context, i int) (io.ReadCloser, error) {
			r := io.Reader(bytes.NewReader(p.content[i]))
			if p.whole != nil {
				r = p.whole(i)
			}
			return p.answer(ctx, ask{i, 0, -1}, r)
		},
		Create: func(i int) (download.File, error) { return p.files[i], nil },
		Done: func(i int, _ download.File, size int64, crc uint32) error {
			p.mu.Lock()
			defer p.mu.Unlock()
			if size != int64(len(p.content[i])) {
				return fmt.Errorf("part %d is done with %d bytes, want %d", i, size, len(p.content[i]))
			}
			p.crcs[i] = crc
			p.done = append(p.done, i)
			return nil
		},
		Wrong: func(i int, msg string) error { return fmt.Errorf("part %d: %s: %w", i, msg, errWrong) },
		Named: func(i int, err error) error { return fmt.Errorf("part %d: %w", i, err) },
	}
}

func (p *place) answer(ctx context.Context, a ask, r io.Reader) (io.ReadCloser, error) {
	p.mu.Lock()
	p.asked = append(p.asked, a)
	p.mu.Unlock()
	if p.opening != nil {
		if err := p.opening(ctx, a); err != nil {
			return nil, err
		}
	}
	p.mu.Lock()
	p.open++
	p.most = max(p.most, p.open)
	p.mu.Unlock()
	if p.reading != nil {
		r = p.reading(ctx, a, r)
	}
	return &answer{ctx: ctx, p: p, r: r}, nil
}

type answer struct {
	ctx context.Context //nolint:containedctx // an answer's
	p   *place
	r   io.Reader
}

func (a *answer) Read(b []byte) (int, error) {
	if err := a.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := a.r.Read(b)
	a.p.mu.Lock()
	a.p.given += int64(n)
	a.p.mu.Unlock()
	return n, err
}

func (a *answer) Close() error {
	a.p.mu.Lock()
	defer a.p.mu.Unlock()
	a.p.open--
	return nil
}

// run runs the job and wants nothing of it to go on afterwards.
func (p *place) run(t *testing.T, opts download.Options) (download.Result, error) {
	t.Helper()
	return p.runUnder(t.Context(), t, opts)
}

func (p *place) runUnder(ctx context.Context, t *testing.T, opts download.Options) (download.Result, error) {
	t.Helper()
	before := runtime.NumGoroutine()
	res, err := download.Run(ctx, p.job(), opts)
	for range 200 {
		if runtime.NumGoroutine() <= before {
			break
		}
		time.Sleep(time.Millisecond) // what was told to end may not have ended yet
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines go on", after-before)
	}
	if p.open != 0 {
		t.Errorf("%d answers were not closed", p.open)
	}
	return res, err
}

// complete wants every part to be there.
func (p *place) complete(t *testing.T) {
	t.Helper()
	for i, want := range p.content {
		if !bytes.Equal(p.files[i].b, want) {
			t.Errorf("part %d has other bytes", i)
		}
		if got, ok := p.crcs[i]; !ok || got != crc32.ChecksumIEEE(want) {
			t.Errorf("part %d: got the CRC %08x (%v), want %08x", i, got, ok, crc32.ChecksumIEEE(want))
		}
	}
	if len(p.done) != len(p.content) {
		t.Errorf("done: %v, want each of %d parts once", p.done, len(p.content))
	}
}

// again makes the same place for another run, with the files as they are.
func (p *place) again() *place {
	q := &place{parts: p.parts, content: p.content, files: p.files, crcs: map[int]uint32{}}
	for _, f := range q.files {
		f.err = nil
	}
	return q
}

// journal opens a journal for the parts.
func (p *place) journal(t *testing.T, f *memory) *download.Journal {
	t.Helper()
	j, err := download.OpenJournal(f, "test", &download.Job{Parts: p.parts})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// watch collects events, and wants them to be in order for each part.
type watch struct {
	t      *testing.T
	mu     sync.Mutex
	events map[string][]progress.Event
}

func newWatch(t *testing.T) *watch { return &watch{t: t, events: map[string][]progress.Event{}} }

func (w *watch) report(e progress.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.events[e.Name]
	if n := len(list); n > 0 && e.State == progress.Moving && e.Done <= list[n-1].Done && list[n-1].State != progress.Retrying {
		w.t.Errorf("%s: %d bytes are done after %d were", e.Name, e.Done, list[n-1].Done)
	}
	if e.Total >= 0 && e.Done > e.Total {
		w.t.Errorf("%s: %d bytes are done of %d", e.Name, e.Done, e.Total)
	}
	w.events[e.Name] = append(list, e)
}

func (w *watch) states(name string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []string
	for _, e := range w.events[name] {
		if n := len(list); n == 0 || list[n-1] != e.State.String() {
			list = append(list, e.State.String())
		}
	}
	return list
}

// temporaryError asks for another attempt.
type temporaryError struct{}

func (temporaryError) Error() string   { return "not now" }
func (temporaryError) Temporary() bool { return true }

// failing gives n bytes and then an error.
func failing(r io.Reader, n int64, err error) io.Reader {
	return io.MultiReader(io.LimitReader(r, n), &errReader{err})
}

type errReader struct{ err error }

func (e *errReader) Read([]byte) (int, error) { return 0, e.err }
