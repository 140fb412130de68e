package inspect

import (
	"context"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
)

const (
	// headersBytes is about how much memory the headers may take, in bytes, that
	// are read at once: that of the largest.
	headersBytes = 64 << 20
	// smallHeader is the length of a header, in bytes, up to which eight are read
	// at once. Longer ones wait for each other.
	smallHeader = headersBytes / 8 / headerGrows
	// headerGrows is how many times its length a header takes in memory.
	headerGrows = 4
)

// MaxListedBytes is about how much memory the tensors may take that [Tensors]
// lists, or in which [Diff] finds a difference, those of all members together: no
// less than those of any one safetensors file that can be read.
const MaxListedBytes = 80 << 20

// budget is the part of the memory for headers that one visit of [scan] has.
//
// Whoever waits for more has nothing open: a stream may hold memory that another
// needs to get on.
type budget struct {
	of    *semaphore.Weighted
	bytes int64
	used  int64 // by headers that were begun
}

// smallBudget is what every visit begins with.
const smallBudget = smallHeader * headerGrows

// takeBudget waits for the memory of a small header.
func takeBudget(ctx context.Context, of *semaphore.Weighted) (*budget, error) {
	return &budget{of: of, bytes: smallBudget}, of.Acquire(ctx, smallBudget)
}

// enough reports whether it suffices for one more header, of n bytes; -1 is
// one that may be of any length. It becomes larger if nobody has to be waited for.
func (s *budget) enough(n int64) bool {
	if n < 0 {
		n = headersBytes
	}
	more := min(s.used+n*headerGrows, headersBytes) - s.bytes
	if more > 0 {
		if !s.of.TryAcquire(more) {
			return false
		}
		s.bytes += more
	}
	s.used += n * headerGrows
	return true
}

// all waits for all that there is.
func (s *budget) all(ctx context.Context) error {
	if s.bytes == headersBytes {
		return nil
	}
	s.release()
	if err := s.of.Acquire(ctx, headersBytes); err != nil {
		return err
	}
	s.bytes = headersBytes
	return nil
}

func (s *budget) release() {
	s.of.Release(s.bytes)
	s.bytes = 0
}

// listing bounds what is kept of all members.
type listing struct{ left atomic.Int64 }

func newListing() *listing {
	l := &listing{}
	l.left.Store(MaxListedBytes)
	return l
}

// keep reports whether there is room for what costs n. Once there was not, there
// is none for anything: whether a listing is full does not depend on the order of
// what it holds.
func (l *listing) keep(n int64) bool { return l.left.Add(-n) >= 0 }

func (l *listing) full() bool { return l.left.Load() < 0 }

// tensorBytes is what a tensor takes beside its name and its shape.
const tensorBytes = 200

// cost is what tensors take in memory, in bytes.
func cost(tensors ...*modelfile.Tensor) (n int64) {
	for _, t := range tensors {
		dims := len(t.Shape)
		if t.View != nil {
			dims += len(t.Shape) + tensorBytes/8 // the archive's own
		}
		n += tensorBytes + int64(len(t.Name)) + 8*int64(dims)
	}
	return n
}

// errTooMany is the error for more tensors than are listed.
func errTooMany(opts Options) error {
	err := error(&carton.Error{
		Path: opts.Member, Kind: carton.ErrLimit,
		Msg: fmt.Sprintf("its tensors take more than %d bytes of memory", MaxListedBytes),
	})
	if opts.Member == "" {
		err = hint.With(err, "look into one file with %s", hint.Member)
	}
	return err
}
