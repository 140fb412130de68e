package inspect

import (
	"context"
	"io"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

// noteSkipped is what is said of a PT2 archive that is not looked into.
const noteSkipped = "is compressed, and is described only once it was extracted"

// skipped reports whether a file is not looked into because that would cost
// reading it all.
func skipped(f file, opts Options) bool {
	return f.format == formatPT2 && !ranged(f.Member) && !opts.Through
}

type packedTensor struct{}

func lookIntoPT2(ctx context.Context, src carton.Source, f file, opts Options) (content, error) {
	if skipped(f, opts) {
		return content{notes: []string{noteSkipped}}, nil
	}
	return content{notes: []string{"is not read yet"}}, nil
}

// counted returns the tensors that make a file's parameters.
func counted(tensors []Tensor) []Tensor { return tensors }

func openPacked(ctx context.Context, src carton.Source, t *Tensor) (io.ReadCloser, error) {
	return nil, ErrElements
}

func sameTensor(a, b Tensor) bool { return false }
