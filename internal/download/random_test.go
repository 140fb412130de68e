package download_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/download"
	"github.com/carton-oci/carton-oci/internal/ranges"
	"github.com/carton-oci/carton-oci/internal/testenv"
)

const (
	randomRuns = 200
	// randomEnd is after how long a run is taken for one that never ends. It is no
	// limit that a slow machine comes near to.
	randomEnd = 2 * time.Minute
)

// trouble is a place that misbehaves as a seed says: the first few answers, so that
// an end can be reached.
type trouble struct {
	mu   sync.Mutex
	rnd  *rand.Rand
	left int
}

// next returns a number below n, or -1 where all is to go well.
func (m *trouble) next(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left == 0 || m.rnd.IntN(3) > 0 {
		return -1
	}
	m.left--
	return m.rnd.IntN(n)
}

// after returns how many bytes come before it strikes: often none or all of them.
func (m *trouble) after(n int64) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch m.rnd.IntN(4) {
	case 0:
		return 0
	case 1:
		return n
	}
	return m.rnd.Int64N(n + 1)
}

func (m *trouble) opening(_ context.Context, a ask) error {
	switch m.next(8) {
	case 0:
		return temporaryError{}
	case 1:
		if a.n >= 0 {
			return ranges.ErrNone
		}
	}
	runtime.Gosched()
	return nil
}

func (m *trouble) reading(ctx context.Context, a ask, r io.Reader) io.Reader {
	size := a.n
	if size < 0 {
		return r
	}
	switch m.next(8) {
	case 0:
		return failing(r, m.after(size), temporaryError{})
	case 1:
		return failing(r, m.after(size), ranges.ErrNone)
	case 2:
		return io.LimitReader(r, m.after(size))
	case 3:
		return io.MultiReader(r, strings.NewReader("x"))
	case 4: // comes to its end when its part is given up, or the run
		return io.MultiReader(io.LimitReader(r, m.after(size)), readerFunc(func([]byte) (int, error) {
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
			return 0, io.EOF
		}))
	}
	return r
}

// Whatever happens in whatever order, a run ends; and if it ends well, everything
// is there. What one run could not bring, the next ones do.
func TestRunsWithTroubleAtRandomEnd(t *testing.T) {
	for seed := range uint64(testenv.Few(randomRuns, randomRuns/8)) {
		rnd := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // repeatable is what it is to be
		p := randomPlace(rnd)
		journal := &memory{}
		workers, left := 1+rnd.IntN(8), 1+rnd.IntN(6)
		for try := 1; ; try++ {
			m := &trouble{rnd: rnd, left: left}
			p.opening, p.reading = m.opening, m.reading
			ctx, stop := context.WithTimeout(t.Context(), randomEnd)
			_, err := p.runUnder(ctx, t, download.Options{Concurrency: workers, Journal: p.journal(t, journal)})
			hung := errors.Is(ctx.Err(), context.DeadlineExceeded)
			stop()
			if hung {
				t.Fatalf("seed %d: the run does not end", seed)
			}
			if err == nil {
				break
			}
			if try == 4 {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if left /= 2; try == 3 {
				left = 0 // the last time all goes well
			}
			p = p.again()
		}
		p.complete(t)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// randomPlace makes a few parts: large and empty, by ranges and as streams, one
// after another in bundles.
func randomPlace(rnd *rand.Rand) *place {
	sizes := make([]int, 1+rnd.IntN(4))
	for i := range sizes {
		sizes[i] = []int{0, 1, mib, 2*mib + 1, 3 * mib, 5*mib - 1}[rnd.IntN(6)]
	}
	p := newPlace(sizes...)
	for i := range p.parts {
		p.parts[i].Ranged = rnd.IntN(5) > 0
		p.parts[i].Elsewhere = rnd.IntN(2) > 0
		if rnd.IntN(3) == 0 {
			p.parts[i].Bundle = 1
		}
	}
	return p
}
