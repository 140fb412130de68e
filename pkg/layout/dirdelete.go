package layout

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"regexp"
	"slices"

	"github.com/carton-oci/carton-oci/internal/jsonstream"
	"github.com/carton-oci/carton-oci/internal/localfile"
	"github.com/carton-oci/carton-oci/internal/place"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Delete implements [Store]. A tag leaves its manifest listed without one, as in a
// registry. A manifest takes along the blobs that no other one in the folder needs;
// manifests that name it as their subject stay. index.json changes first, so that a
// process that is killed leaves blobs nobody needs, and no manifest without its blobs.
func (d *Dir) Delete(ctx context.Context, reference string, opts DeleteOptions) error {
	desc, err := d.Resolve(ctx, reference)
	if err != nil {
		return err
	}
	if reference != string(desc.Digest) {
		return d.change(ctx, func(x *indexFile) error { return d.untag(ctx, x, reference) })
	}
	var own []digest.Digest
	err = d.change(ctx, func(x *indexFile) error {
		if tags := x.tagsOf(desc.Digest); opts.KeepTagged && len(tags) > 0 {
			return Tagged(desc.Digest, tags)
		}
		n := len(x.Manifests)
		x.Manifests = slices.DeleteFunc(x.Manifests, func(e indexEntry) bool { return e.Digest == desc.Digest })
		needed, err := d.needed(x)
		if err != nil {
			return err
		}
		if needed[desc.Digest] && len(x.Manifests) == n {
			return errorf(ErrUnsupported, reference, "is part of an index in %s, and goes with that", quote(d.path))
		}
		all := map[digest.Digest]bool{}
		err = d.walk(desc.Digest, all, false)
		for dgst := range all {
			own = append(own, dgst)
		}
		return err
	})
	if err != nil {
		return err
	}
	return d.sweep(ctx, own)
}

// tagsOf returns the tags of a manifest.
func (x *indexFile) tagsOf(dgst digest.Digest) []string {
	var tags []string
	for i := range x.Manifests {
		if e := &x.Manifests[i]; e.Digest == dgst && e.tag() != "" {
			tags = append(tags, e.tag())
		}
	}
	return tags
}

// change reads, changes and replaces index.json while nobody else does.
func (d *Dir) change(ctx context.Context, change func(*indexFile) error) error {
	return d.write(ctx, ocispec.ImageIndexFile, true, func() ([]byte, error) {
		index, err := d.readIndex()
		if err == nil {
			err = change(index)
		}
		if err != nil {
			return nil, err
		}
		return jsonstream.Marshal(index, "")
	})
}

// untag takes a tag from its manifest.
func (d *Dir) untag(ctx context.Context, x *indexFile, tag string) error {
	desc, err := d.Resolve(ctx, tag) // again: it may have moved, or be gone
	if err != nil {
		return err
	}
	for i := range x.Manifests {
		if x.Manifests[i].tag() == tag {
			x.Manifests[i].setTag("")
		}
	}
	x.tidy(map[digest.Digest]bool{desc.Digest: true})
	return nil
}

// sweep removes those blobs that no manifest needs, while nobody changes index.json.
func (d *Dir) sweep(ctx context.Context, blobs []digest.Digest) error {
	lock, err := d.acquire(ctx, ocispec.ImageIndexFile, place.Options{Replace: true})
	if err != nil {
		return err
	}
	defer lock.Discard() //nolint:errcheck // nothing was written
	index, err := d.readIndex()
	if err != nil {
		return err
	}
	needed, err := d.needed(index)
	if err != nil {
		return err
	}
	root, err := localfile.OpenRoot(d.path)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, dgst := range blobs {
		if needed[dgst] {
			continue
		}
		if err := root.Remove(blobPath(dgst)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return place.Explain("delete", blobPath(dgst), err)
		}
	}
	return nil
}

// needed returns the blobs of all manifests of an index, and the manifests.
func (d *Dir) needed(x *indexFile) (map[digest.Digest]bool, error) {
	needed := map[digest.Digest]bool{}
	for i := range x.Manifests {
		if err := d.walk(x.Manifests[i].Digest, needed, true); err != nil {
			return nil, err
		}
	}
	return needed, nil
}

// walk adds a manifest and what it needs to the blobs that are needed. Whether it has its
// digest is not asked. Of one that is damaged, or of another form, everything that it
// names is needed, its subject too; with guess that counts, and without it nothing does:
// what goes along with it must be known to be its own.
func (d *Dir) walk(dgst digest.Digest, needed map[digest.Digest]bool, guess bool) error {
	if named := CheckDigest(dgst) == nil; needed[dgst] || !named {
		return nil
	}
	needed[dgst] = true
	b, err := d.readFile(blobPath(dgst))
	if errors.Is(err, fs.ErrNotExist) { // it names nothing any more
		return nil
	}
	if err != nil {
		return err
	}
	var m struct {
		Config    *ocispec.Descriptor  `json:"config"`
		Layers    []ocispec.Descriptor `json:"layers"`
		Manifests []ocispec.Descriptor `json:"manifests"`
	}
	known := json.Unmarshal(b, &m) == nil && (m.Layers != nil || m.Manifests != nil)
	if !known && !guess {
		return nil
	}
	if !known {
		for _, named := range digestPattern.FindAll(b, -1) {
			needed[digest.Digest(named)] = true
		}
		return nil
	}
	for _, child := range m.Manifests {
		if err := d.walk(child.Digest, needed, guess); err != nil {
			return err
		}
	}
	if m.Config != nil {
		m.Layers = append(m.Layers, *m.Config)
	}
	for _, l := range m.Layers {
		needed[l.Digest] = true
	}
	return nil
}

var digestPattern = regexp.MustCompile(`sha256:[0-9a-f]{64}`)
