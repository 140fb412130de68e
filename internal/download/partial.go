package download

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// Output is what a job fills: a *place.File or *place.Folder.
type Output interface {
	// Partial is what it is called until it is complete.
	Partial() string
	// Stale reports whether it holds what an earlier run left.
	Stale() bool
	// Journal is what is remembered beside it; nil where nothing is to be.
	Journal() JournalFile
	// Clear removes what it holds.
	Clear() error
	// Commit gives it its name. Unsynced: that failed at bringing it to the disk.
	Commit() error
	Unsynced() bool
	// Keep leaves it to another run where that is possible, Discard removes it.
	Keep() (bool, error)
	Discard() error
}

// Partial is an output on its way, and the one place that decides whether what has
// arrived of it stays: see the package's rules.
type Partial struct {
	out     Output
	job     *Job
	journal *Journal

	mu     sync.Mutex
	result Result
}

// NewPartial takes an output that was made just now. [Partial.End] ends it.
func NewPartial(out Output) *Partial { return &Partial{out: out} }

// TakeOver looks at what an earlier run left of the job, which what names. Where
// that was another job, it is given up for this one once a byte of this one can be
// had; where only sizes differ, whoever tells them is wrong now or was then, and
// nobody can say which: that is an error.
func (p *Partial) TakeOver(ctx context.Context, what string, job *Job) error {
	p.job = job
	journal, err := OpenJournal(p.out.Journal(), what, job)
	if err != nil {
		return hint.With(err, "if it can't be read again and again, remove %s to begin anew", p.out.Partial())
	}
	p.journal = journal
	switch journal.other {
	case otherSizes:
		return hint.With(errOtherSizes, "run it again later, or remove %s to begin anew", p.out.Partial())
	case otherContent:
		if err := job.probe(ctx); err != nil {
			return err
		}
	case noOther:
	}
	if !p.out.Stale() || journal.arrived > 0 {
		return nil
	}
	// The file first: where the disk is full, the journal needs the room.
	if err := p.out.Clear(); err != nil || journal.other == noOther {
		return err
	}
	return journal.Reset()
}

var errOtherSizes = errors.New("what an earlier run left was begun with other sizes of the same content")

// probe asks for the beginning of a part that is not here.
func (j *Job) probe(ctx context.Context) error {
	for i := range j.Parts {
		p := &j.Parts[i]
		if p.Size == 0 || p.Copied {
			continue
		}
		var body io.ReadCloser
		var err error
		if p.Ranged {
			body, err = j.Range(ctx, i, 0, min(p.Size, BlockSize))
		} else {
			body, err = j.Whole(ctx, i)
		}
		if err == nil {
			_, err = fill(body, make([]byte, 1))
			body.Close()
		}
		if err != nil && j.Named != nil {
			err = j.Named(i, err)
		}
		return err
	}
	return nil
}

// Run runs the job.
func (p *Partial) Run(ctx context.Context, opts Options) error {
	opts.Journal = p.journal
	var err error
	p.result, err = Run(ctx, *p.job, opts)
	return err
}

// RunPart runs a job of one part: that with the index i of the job that was taken
// over, wherever it comes from now. Several may run at once, each of another part.
func (p *Partial) RunPart(ctx context.Context, i int, one Job, opts Options) (Result, error) {
	opts.Journal = p.journal.part(i)
	before := usable(&one.Parts[0], opts.Journal.of(0), one.Parts[0].byRanges())
	result, err := Run(ctx, one, opts)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.result.Total == 0 {
		p.result.Total, p.result.There = p.job.there(p.journal)
	}
	p.result.There += result.There - before
	p.result.Resumed += result.Resumed
	p.result.Refused = p.result.Refused || result.Refused
	return result, err
}

// there returns the size of all parts, and what is there of them by the journal.
func (j *Job) there(journal *Journal) (total, there int64) {
	for i := range j.Parts {
		p := &j.Parts[i]
		total += max(0, p.Size)
		there += usable(p, journal.of(i), p.byRanges())
	}
	return total, there
}

// Resumed returns how many bytes of verified parts are an earlier run's.
func (p *Partial) Resumed() int64 { return p.result.Resumed }

// End ends the output: it is put in its place where err is nil, and stays or goes
// else. It returns the error that there is then, with what can be done.
func (p *Partial) End(err error) error {
	if err == nil {
		if err = p.out.Commit(); err == nil {
			return nil
		}
		if p.out.Unsynced() && p.journal.Distrust() != nil {
			return p.discard(err)
		}
	}
	if p.little() || p.result.Refused && errtext.IsContent(err) {
		return p.discard(err)
	}
	kept, left := p.out.Keep()
	switch {
	case left != nil:
		return hint.With(err, "%v: remove it by hand", left)
	case kept:
		return p.remark(err)
	}
	return err
}

// little reports whether nothing has arrived, or less than a block of it in all. What
// an earlier run left and this one has not looked at, or not taken over, may be
// anything.
func (p *Partial) little() bool {
	if p.journal == nil || p.journal.other != noOther {
		return !p.out.Stale()
	}
	return p.journal.Holds() < BlockSize
}

// remark says what another run can do.
func (p *Partial) remark(err error) error {
	name := p.out.Partial()
	switch s := p.result.Sentence(errtext.Quote(name)); {
	case errtext.IsContent(err):
		return hint.With(err, "what has arrived stays in %s: remove it if you do not want to go on with it", name)
	case s != "":
		return hint.With(err, "%s", hint.Text(s))
	}
	return hint.With(err, "run it again to go on with what is in %s", name)
}

func (p *Partial) discard(err error) error {
	if left := p.out.Discard(); left != nil {
		return hint.With(err, "%v: remove it by hand", left)
	}
	return err
}
