package download

import (
	"context"
	"io"

	"github.com/carton-oci/carton-oci/pkg/progress"
)

const (
	// BlockSize is the unit, in bytes, in which arrived bytes are remembered and
	// checksummed: 100 GB are 100,000 entries of a journal.
	BlockSize = 1 << 20
	// RangeSize is the most bytes of one request: at 20 MB/s a connection, the
	// question's round trip of 50 ms is a sixteenth of its answer's time, and what
	// a broken connection costs is little.
	RangeSize = 16 << 20
	// Ahead is how many bytes of one part may wait on the disk for the hash to get
	// to them: few enough to be read back from memory.
	Ahead = 512 << 20
	// DefaultConcurrency is how many connections are open at once, or blobs or members
	// under way, where the caller does not say.
	DefaultConcurrency = 8
	// Attempts is how often a part, or a blob, is tried in all whose source says that
	// another attempt may do better. Sources have tried their requests before.
	Attempts = 3

	// bufferSize fits a core's cache, where bytes are hashed, summed and written
	// from. It divides BlockSize. Twice as much made the system spend 2.1 s on
	// writing a GiB, against 0.9 s (ext4 of Linux 6.18, 8 connections): it then asks
	// for larger pieces of memory than it can find at once.
	bufferSize = 128 << 10
)

// Concurrency returns how many at once somebody means who says n.
func Concurrency(n int) int {
	if n <= 0 {
		return DefaultConcurrency
	}
	return n
}

// Part is content that is to be in a file.
type Part struct {
	// Name is what people and progress call it, unique in its job.
	Name string
	// Size is in bytes; -1 where it is not known: such a part is never Ranged.
	Size int64
	// SHA256 is the content's, in lower-case hex; "" where nobody knows it: such a
	// part is done when all of it has arrived, and is not for a journal.
	SHA256 string
	// Offset is where the content begins in the file that Job.Create gives, which
	// is relative to it: the journal tells layouts apart by it.
	Offset int64
	// Ranged says that Job.Range costs what it gives and little more.
	Ranged bool
	// Elsewhere says that Job.Whole may give right bytes where those of Job.Range
	// were wrong.
	Elsewhere bool
	// Copied says that Job.Copy may give the content: it is asked first, and Range or
	// Whole where what it gave was not the content.
	Copied bool
	// Bundle is non-zero for parts that lie in one stream. Those that are not
	// Ranged, or small, are read one after another in their order.
	Bundle int
}

// File is where a part goes. Offsets are relative to the part.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// StartWriteback is told of every whole block that is there, to begin to bring it to
	// the disk while the next ones arrive.
	StartWriteback(off, n int64)
}

// Job says what is downloaded. Its functions are called for several parts at
// once, Range also several times at once for one. i is the index in Parts.
type Job struct {
	Parts []Part
	// Extent is the size in bytes of the one file that all parts lie in; 0 where
	// each has a file of its own.
	Extent int64
	// Range opens n bytes from off, no more and no less; where off is 0 and n the
	// part's size it may ask for the whole. Nothing it gives is verified. nil where
	// no part is Ranged.
	Range func(ctx context.Context, i int, off, n int64) (io.ReadCloser, error)
	// Whole opens all of a part. The reader returns io.EOF only if it had the hash.
	Whole func(ctx context.Context, i int) (io.ReadCloser, error)
	// Copy is Whole of a copy on this machine. nil where no part is Copied.
	Copy func(ctx context.Context, i int) (io.ReadCloser, error)
	// Check, which may be nil, is called once for a part that is read by ranges:
	// for what is to be right besides its content. Whole checks that itself.
	Check func(ctx context.Context, i int) error
	// Create opens the file that the part goes to, to be written and read back. It
	// is called once for a part, when that begins.
	Create func(i int) (File, error)
	// Done is called when all of a part is in its file f and had its hash, before
	// that is closed. crc is the IEEE CRC-32.
	Done func(i int, f File, size int64, crc uint32) error
	// Wrong makes the error for a part that has other content; msg says "got X,
	// want Y".
	Wrong func(i int, msg string) error
	// Failed, which may be nil, is told of a part that can't be had as a stream, and
	// how many bytes came. What it returns ends the run; nil goes on without it.
	Failed func(i int, size int64, err error) error
	// Named gives an error of a source the part's name, nil for none: as it is.
	Named func(i int, err error) error
}

// Options say how a job is run. The zero value is useful.
type Options struct {
	// Concurrency is how many connections are open at once; 0 is 8.
	Concurrency int
	// Journal remembers what has arrived; nil remembers nothing.
	Journal *Journal
	// Progress is told about every part.
	Progress progress.Func
}

// Result says what a run did, whether or not it ended well.
type Result struct {
	// Total is the size of all parts in bytes, as far as it is known.
	Total int64
	// There is how many bytes another run could go on with.
	There int64
	// Resumed is how many bytes of verified parts are an earlier run's.
	Resumed int64
	// Refused: a part's content was wrong, also when it was fetched again.
	Refused bool
}

// Run downloads a job. It returns when nothing of it goes on any more: nil when
// every part is there and verified, else the first error.
func Run(ctx context.Context, job Job, opts Options) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := newRun(ctx, cancel, &job, opts)
	defer r.closeFiles()
	stop := context.AfterFunc(ctx, r.wake)
	defer stop()
	for range min(Concurrency(opts.Concurrency), r.most()) {
		r.workers.Go(r.work)
	}
	r.workers.Wait()
	return r.result(), context.Cause(ctx)
}
