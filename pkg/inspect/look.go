package inspect

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/carton-oci/carton-oci/internal/download"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
)

// content is what is known of one file.
type content struct {
	*file
	modelfile.Content
	read bool  // there is a header, and it is right
	err  error // why it was not looked into; said in Notes too

	tensors int              // how many there are
	types   map[string]count // of [DescribeMembers], which keeps no tensors
	layout  layout           // the same: see layoutOf
}

// notes are the file's notes.
func (c *content) notes() (notes []Note) {
	for _, text := range c.Notes {
		notes = append(notes, Note{Member: c.Path, Text: text, Err: c.err})
	}
	return notes
}

// tensor returns one of the file's tensors.
func (c *content) tensor(i int) *Tensor {
	return &Tensor{Tensor: c.Tensors[i], Member: c.Path, in: c.file}
}

// scan reads what is inside files, many at once. visit is called for each by its
// index, several at once, with memory that is its own until it returns.
func scan(
	ctx context.Context, files []file, opts Options, visit func(ctx context.Context, i int, s *budget) error,
) error {
	memory := semaphore.NewWeighted(headersBytes)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(download.Concurrency(opts.Concurrency))
	for _, lane := range lanes(files) {
		group.Go(func() error {
			for _, i := range lane {
				s, err := takeBudget(ctx, memory)
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

// noteSkipped is what is said of an archive that is not looked into because that
// would cost reading it all.
const noteSkipped = "can only be read from its beginning here, and is described only once it was extracted"

// The reasons for not looking into an archive that is not broken.
var (
	errSkipped = hint.With(errors.New(noteSkipped), "pull it with %s, and look into the folder", hint.Unpack)
	errNoSize  = errors.New("is of unknown size, and so its end can't be found")
)

// look reads what is inside one file. An archive has all memory for itself: how
// much it needs is known only once it was read.
func look(ctx context.Context, src carton.Source, f file, opts Options, s *budget) (content, error) {
	archive := f.reader().ReadArchive != nil
	if archive && !ranged(f.Member) && !opts.Through {
		return unread(f, noteSkipped, errSkipped), nil
	}
	one := []carton.Member{f.Member}
	if err := src.Sizes(ctx, one); err != nil {
		return content{}, err
	}
	f.Member = one[0]
	var in *modelfile.Content
	var broken, err error
	switch {
	case !archive:
		in, broken, err = readHeader(ctx, src, f, s)
	case f.Size < 0:
		return unread(f, errNoSize.Error(), errNoSize), nil
	default:
		in, broken, err = readArchive(ctx, src, f, s)
	}
	if linked, ok := outOfReach(ctx, f, err, opts); ok {
		return linked, nil
	}
	switch {
	case err != nil:
		return content{}, err
	case broken != nil:
		return unread(f, broken.Error(), &carton.Error{Path: f.Path, Kind: carton.ErrFormat, Msg: broken.Error()}), nil
	}
	return content{file: &f, Content: *in, read: true, tensors: len(in.Tensors)}, nil
}

// unread is what is known of a file that was not looked into.
func unread(f file, note string, err error) content {
	return content{file: &f, Content: modelfile.Content{Notes: []string{note}}, err: err}
}

// outOfReach makes what is known of a linked file of the error that nobody gave
// it, where opts want what is at hand.
func outOfReach(ctx context.Context, f file, err error, opts Options) (content, bool) {
	var why *carton.Error
	if !opts.Local || f.Place != carton.PlaceLinked || ctx.Err() != nil || !errors.Is(err, carton.ErrLink) ||
		!errors.As(err, &why) {
		return content{}, false
	}
	nameless := *why
	nameless.Path = ""
	return unread(f, "is linked, and was not read: "+nameless.Error(), err), true
}
