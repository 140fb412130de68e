package layout

import (
	"context"
	"iter"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Tags implements [Fetcher]: the names of entries that can be asked for, in the order of
// index.json, each once.
func (d *Dir) Tags(context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		index, err := d.open()
		if err != nil {
			yield("", err)
			return
		}
		given := map[string]bool{}
		for i := range index.Manifests {
			tag := index.Manifests[i].tag()
			if !isTag(tag) || given[tag] {
				continue
			}
			given[tag] = true
			if !yield(tag, nil) {
				return
			}
		}
	}
}

// open returns the index of a folder that is an image layout.
func (d *Dir) open() (*indexFile, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	return d.readIndex()
}

// Referrers implements [Fetcher]. It reads the manifests that index.json lists, which is
// where referrers are listed in an image layout, and the index that a copy of a
// registry may have brought ([ReferrersTag]). What can't be read refers to nothing.
func (d *Dir) Referrers(ctx context.Context, subject ocispec.Descriptor, artifactType string) ([]ocispec.Descriptor, error) {
	index, err := d.open()
	if err != nil {
		return nil, err
	}
	list := ReferrerList{ArtifactType: artifactType}
	for i := range index.Manifests {
		e := &index.Manifests[i]
		if e.Digest == subject.Digest || CheckDescriptor(e.Descriptor) != nil {
			continue
		}
		b, err := d.FetchManifest(ctx, e.Descriptor)
		switch {
		case err != nil && !isContent(err):
			return nil, err
		case err != nil:
			continue
		}
		if e.tag() == ReferrersTag(subject.Digest) {
			if listed, err := ParseIndex(b); err == nil {
				if err := list.Add(listed.Manifests...); err != nil {
					return nil, err
				}
			}
		}
		named, desc := ReferrerOf(plainDescriptor(e.Descriptor), b)
		if named == nil || named.Digest != subject.Digest {
			continue
		}
		if err := list.Add(desc); err != nil {
			return nil, err
		}
	}
	return list.All, nil
}
