package inspect

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/carton-oci/carton-oci/internal/byname"
	"github.com/carton-oci/carton-oci/internal/download"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// content is what is inside one file.
type content struct {
	read     bool // there is a header, and it is right
	tensors  []Tensor
	models   []Model  // of a PT2 archive
	notes    []string // what is wrong
	err      error    // why it was not looked into; said in notes too
	findings []string // what an archive's reader has to say of it
}

// scan reads what is inside files, many at once. visit is called for each by its
// index, several at once, with memory that is its own until it returns.
func scan(ctx context.Context, files []file, opts Options, visit func(ctx context.Context, i int, s *share) error) error {
	memory := semaphore.NewWeighted(headersBytes)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(download.Concurrency(opts.Concurrency))
	for _, lane := range lanes(files) {
		group.Go(func() error {
			for _, i := range lane {
				s, err := takeShare(ctx, memory)
				if err != nil {
					return err
				}
				err = visit(ctx, i, s)
				s.release()
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// lanes divides files into those that are read one after another: what lies in
// one stream that can only be read forward.
func lanes(files []file) [][]int {
	var lanes [][]int
	streams := map[int]int{}
	for i, f := range files {
		if lane, ok := streams[f.Bundle]; ok && !ranged(f.Member) && f.Bundle != 0 {
			lanes[lane] = append(lanes[lane], i)
			continue
		}
		if f.Bundle != 0 && !ranged(f.Member) {
			streams[f.Bundle] = len(lanes)
		}
		lanes = append(lanes, []int{i})
	}
	return lanes
}

// look reads what is inside one file.
func look(ctx context.Context, src carton.Source, f file, opts Options, s *share) (content, error) {
	one := []carton.Member{f.Member}
	if err := src.Sizes(ctx, one); err != nil {
		return content{}, err
	}
	f.Member = one[0]
	c, err := lookInto(ctx, src, f, opts, s)
	if linked, ok := outOfReach(ctx, f.Member, err, opts); ok {
		return linked, nil
	}
	return c, err
}

// lookInto reads what is inside one file. A PT2 archive has all memory for itself:
// how much it needs is known only once it was read.
func lookInto(ctx context.Context, src carton.Source, f file, opts Options, s *share) (content, error) {
	if f.format == byname.PT2 {
		if err := s.all(ctx); err != nil {
			return content{}, err
		}
		return lookIntoPT2(ctx, src, f, opts)
	}
	h, note, err := readSafetensors(ctx, src, f.Member, s)
	switch {
	case err != nil:
		return content{}, err
	case note != "":
		return broken(f.Member, note), nil
	}
	c := content{read: true, tensors: make([]Tensor, 0, len(h.Tensors))}
	for i := range h.Tensors {
		t := &h.Tensors[i]
		c.tensors = append(c.tensors, Tensor{
			Name: t.Name, DType: t.DType, Shape: t.Shape, Bytes: t.End - t.Begin, Member: f.Path,
			at: location{member: &f.Member, kind: kindSafetensors, header: h.DataStart, begin: t.Begin},
		})
	}
	if h.Draft {
		c.notes = []string{"is written as the format's first draft has it"}
	}
	return c, nil
}

// broken is what is known of a file whose content is not as its format wants it.
func broken(m carton.Member, note string) content {
	return content{notes: []string{note}, err: &carton.Error{Path: m.Path, Kind: carton.ErrFormat, Msg: note}}
}

// outOfReach makes what is known of a linked file of the error that nobody gave
// it, where opts want what is at hand.
func outOfReach(ctx context.Context, m carton.Member, err error, opts Options) (content, bool) {
	var why *carton.Error
	if !opts.Local || m.Place != carton.PlaceLinked || ctx.Err() != nil || !errors.Is(err, carton.ErrLink) || !errors.As(err, &why) {
		return content{}, false
	}
	nameless := *why
	nameless.Path = ""
	return content{notes: []string{"is linked, and was not read: " + nameless.Error()}, err: err}, true
}
