package inspect

import (
	"context"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

// content is what is inside one file.
type content struct {
	read     bool // there is a header, and it is right
	tensors  []Tensor
	models   []Model  // of a PT2 archive
	notes    []string // what is wrong
	findings []string // what an archive's reader has to say of it
}

// scan reads what is inside files, many at once. visit is called for each by its
// index, several at once, with memory that is its own until it returns.
func scan(ctx context.Context, files []file, opts Options, visit func(ctx context.Context, i int, s *share) error) error {
	memory := semaphore.NewWeighted(headersBytes)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(opts.concurrency())
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

// look reads what is inside one file. A PT2 archive has all memory for itself:
// how much it needs is known only once it was read.
func look(ctx context.Context, src carton.Source, f file, opts Options, s *share) (content, error) {
	if f.format == formatPT2 {
		if err := s.all(ctx); err != nil {
			return content{}, err
		}
		return lookIntoPT2(ctx, src, f, opts)
	}
	h, note, err := readSafetensors(ctx, src, f.Member, s)
	if err != nil || note != "" {
		return content{notes: nonempty(note)}, err
	}
	c := content{read: true, tensors: make([]Tensor, 0, len(h.Tensors))}
	for i := range h.Tensors {
		t := &h.Tensors[i]
		c.tensors = append(c.tensors, Tensor{
			Name: t.Name, DType: string(t.DType), Shape: t.Shape, Bytes: t.End - t.Begin, Member: f.Path,
			at: location{member: &f.Member, kind: kindSafetensors, header: h.DataStart, begin: t.Begin},
		})
	}
	if h.Draft {
		c.notes = []string{"is written as the format's first draft has it"}
	}
	return c, nil
}

func nonempty(note string) []string {
	if note == "" {
		return nil
	}
	return []string{note}
}
