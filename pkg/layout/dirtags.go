package layout

import (
	"context"
	"iter"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Tags implements [Fetcher]: the names of entries that can be asked for, in the order of
// index.json, each once.
func (d *Dir) Tags(context.Context) iter.Seq2[string, error] { return tagsIn(d) }

// Referrers implements [Fetcher]. It reads the manifests that index.json lists, which is
// where referrers are listed in an image layout, and the index that a copy of a
// registry may have brought ([ReferrersTag]). What can't be read refers to nothing.
func (d *Dir) Referrers(
	ctx context.Context, subject ocispec.Descriptor, artifactType string,
) ([]ocispec.Descriptor, error) {
	return referrersIn(ctx, d, subject, artifactType)
}

// open returns the index of a folder that is an image layout.
func (d *Dir) open() (*indexFile, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	return d.readIndex()
}
