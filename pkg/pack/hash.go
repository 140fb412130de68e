package pack

import (
	"cmp"
	"context"
	"crypto/md5" // the Plums Model Format's checksum: it tells accidents, not attacks
	"crypto/sha256"
	"encoding/hex"
	"io"
	"runtime"
	"slices"

	"github.com/carton-oci/carton-oci/pkg/progress"
	"golang.org/x/sync/errgroup"
)

// hashBuffer is the size in bytes of the buffer of each file that is read.
const hashBuffer = 1 << 20

// hashAll hashes every file once whose hash nothing says, several at a time, the
// largest first. A symlink has its final target's hash and size.
func (p *packer) hashAll(ctx context.Context) error {
	p.askSums()
	p.believeNames()
	read := slices.Clone(p.cutFrom)
	for _, f := range p.files {
		if f.target == "" && (f.hash == "" || f.sum) {
			read = append(read, f)
		}
	}
	slices.SortStableFunc(read, func(a, b *file) int { return cmp.Compare(b.size, a.size) })
	g, ctx := errgroup.WithContext(ctx)
	atOnce := runtime.GOMAXPROCS(0)
	if slices.ContainsFunc(read, func(f *file) bool { return f.remote != nil }) {
		atOnce = listedAtOnce
	}
	g.SetLimit(cmp.Or(max(p.opts.Concurrency, 0), atOnce))
	for _, f := range read {
		g.Go(func() error { return f.hashContent(ctx, p.opts.Progress) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, f := range p.files {
		end := p.final(f)
		f.hash, f.size, f.md5 = end.hash, end.size, end.md5
	}
	return nil
}

// hashContent reads a file to its end.
func (f *file) hashContent(ctx context.Context, report progress.Func) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r, err := f.open()
	if err != nil {
		return err
	}
	defer r.Close()
	event := progress.Event{Name: f.path, Total: f.size}
	send := func(s progress.State) {
		if !f.generated() {
			event.State = s
			report.Report(event)
		}
	}
	send(progress.Started)
	sum, old := sha256.New(), md5.New()
	out := []io.Writer{sum, writerFunc(func(b []byte) (int, error) {
		event.Done += int64(len(b))
		send(progress.Moving)
		return len(b), ctx.Err()
	})}
	if f.sum {
		out = append(out, old)
	}
	// As a plain reader, or the file would not be read through the buffer.
	in := struct{ io.Reader }{io.LimitReader(r, f.size+1)}
	_, err = io.CopyBuffer(io.MultiWriter(out...), in, make([]byte, min(hashBuffer, f.size+1)))
	switch {
	case err != nil:
		return err
	case event.Done > f.size:
		return changed(f.path, "has grown")
	case event.Done < f.size:
		return changed(f.path, "has shrunk")
	}
	f.hash = hex.EncodeToString(sum.Sum(nil))
	if f.sum {
		f.md5 = hex.EncodeToString(old.Sum(nil))
	}
	send(progress.Finished)
	return nil
}

type writerFunc func(b []byte) (int, error)

func (w writerFunc) Write(b []byte) (int, error) { return w(b) }
