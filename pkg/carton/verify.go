package carton

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/carton-oci/carton-oci/internal/download"
	"github.com/carton-oci/carton-oci/pkg/progress"
)

// VerifyOptions change what [Verify] reads. The zero value reads every member
// that the carton itself holds.
type VerifyOptions struct {
	// Links also reads members that only LINKS knows. The source must follow
	// links: see [Resolve].
	Links bool
	// NoContent reads no member but carton.toml and tensor_data/index.toml. What
	// opening the source has checked is all that is known of the others: that
	// they are there, and their sizes.
	NoContent bool
	// Concurrency is how many members are read at once; 0 is 8.
	Concurrency int
	// Progress is told of every member that is read.
	Progress progress.Func
}

// Report is what [Verify] found.
type Report struct {
	// ModelHash is the lower-case hex sha256 of MANIFEST.
	ModelHash string
	// Members counts the entries of MANIFEST.
	Members int
	// Bytes counts the content that was read, after decompression.
	Bytes int64
	// Findings is what is wrong: first what [Check] finds, then the content, by
	// path.
	Findings []Finding
	// Unread lists the members whose content was not checked, sorted.
	Unread []string
}

// OK reports whether no finding is more than a warning. Members may still be
// Unread.
func (r *Report) OK() bool {
	for _, f := range r.Findings {
		if f.Severity != SeverityWarning {
			return false
		}
	}
	return true
}

// Verify checks all of a carton: what [Check] checks, every member's content
// against MANIFEST, and the strings of string tensors.
//
// What it finds is in the report; the error is for a source that can't be read.
// Two members with one hash are read both, but a symlink is not read again.
func Verify(ctx context.Context, src Source, opts VerifyOptions) (*Report, error) {
	members, err := src.Members(ctx)
	if err != nil {
		return nil, err
	}
	report := &Report{ModelHash: src.Manifest().ModelHash(), Members: len(members)}
	found, index, err := check(ctx, src, members)
	if err != nil {
		return nil, err
	}
	report.Findings = found
	v := &verification{
		transfer: transfer{src: src, concurrency: opts.Concurrency, progress: opts.Progress},
		report:   report,
		bad:      map[string]Finding{},
	}
	var read []Member
	for _, m := range members {
		switch {
		case opts.NoContent, m.Place == PlaceLinked && !opts.Links:
			report.Unread = append(report.Unread, m.Path)
		case m.Target == "":
			m.Ranged = false // there is no file to bring ranges into order
			read = append(read, m)
		}
	}
	job := v.job(read, v)
	job.Failed = func(i int, size int64, err error) error {
		v.count(size)
		return v.note(ctx, read[i].Path, err)
	}
	if _, err := download.Run(ctx, job, v.options()); err != nil {
		return nil, err
	}
	if err := v.strings(ctx, index, read); err != nil {
		return nil, err
	}
	v.finish()
	return report, nil
}

type verification struct {
	transfer
	report *Report

	mu  sync.Mutex // guards bad and report.Bytes
	bad map[string]Finding
}

// offset, create and done make v the target of members that are read, one stream
// each, and kept nowhere.
func (v *verification) offset(Member) int64 { return 0 }

func (v *verification) create(Member) (download.File, error) { return nowhere{}, nil }

func (v *verification) done(_ Member, _ download.File, size int64, _ uint32) error {
	v.count(size)
	return nil
}

func (v *verification) count(size int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.report.Bytes += size
}

// nowhere is where content goes that is only read to be verified.
type nowhere struct{}

func (nowhere) WriteAt(b []byte, _ int64) (int, error) { return len(b), nil }
func (nowhere) ReadAt([]byte, int64) (int, error)      { return 0, io.EOF }
func (nowhere) Close() error                           { return nil }
func (nowhere) StartWriteback(off, n int64)            {}

// note makes a finding of what is the carton's fault, and returns any other
// error.
func (v *verification) note(ctx context.Context, path string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f, ok := findingOf(path, err)
	if !ok {
		return err
	}
	if errors.Is(err, ErrLink) { // it was asked for
		f.Severity = SeverityError
		errors.As(err, &f.Err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.bad[path] = f
	return nil
}

// strings counts the strings of string tensors whose files were right. index is
// nil where there is none that can be used.
func (v *verification) strings(ctx context.Context, index *TensorIndex, read []Member) error {
	if index == nil {
		return nil
	}
	counts := map[string]int64{} // by path: many tensors may name one file
	for _, t := range index.Tensors {
		path := t.Path()
		m, ok := findMember(read, path)
		if t.DType != String || t.Shape == nil || !ok || v.bad[path].Err != nil {
			continue
		}
		if m.Size > MaxStringTensorBytes {
			v.bad[path] = Finding{
				Severity: SeverityWarning, Path: path,
				Err: errorf(ErrLimit, path, "is %d bytes: strings are counted in at most %d", m.Size,
					MaxStringTensorBytes),
			}
			continue
		}
		n, counted := counts[path]
		var err error
		if !counted {
			n, err = v.countStrings(ctx, m)
			counts[path] = n
		}
		if err == nil && n != t.Elements() {
			err = errorf(ErrFormat, path, "holds %d strings, and should hold %d: shape %v of tensor %s", n,
				t.Elements(), t.Shape, quoteShort(t.Name))
		}
		if err != nil {
			if err := v.note(ctx, path, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// countStrings returns how many strings the file of a string tensor holds.
func (v *verification) countStrings(ctx context.Context, m Member) (int64, error) {
	b, err := ReadMember(ctx, v.src, m.Path, MaxStringTensorBytes)
	if err != nil {
		return 0, err
	}
	return countStrings(m.Path, b)
}

// finish adds what is bad to the report, without repeating what check found in
// the two members that it reads as well.
func (v *verification) finish() {
	found := map[string]bool{}
	for _, f := range v.report.Findings {
		found[f.Err.Error()] = true
	}
	for _, path := range sortedKeys(v.bad) {
		if f := v.bad[path]; !found[f.Err.Error()] {
			v.report.Findings = append(v.report.Findings, f)
		}
	}
}
