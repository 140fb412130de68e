package layout

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/carton-oci/carton-oci/internal/place"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// tagPattern is what a tag of a folder may be: what registries take, and the
// names with slashes, colons and the like that the specification allows here.
var tagPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._/:@+-]*$`)

// isTag counts the length itself: a pattern that does costs every start of the
// program a millisecond.
func isTag(tag string) bool { return len(tag) <= 255 && tagPattern.MatchString(tag) }

// Resolve implements [Fetcher]. A digest is also found where no entry of
// index.json lists it, as long as the folder holds the manifest. Programs that copy
// one image into a folder often give it no tag (skopeo, crane, oras): "" finds it.
func (d *Dir) Resolve(ctx context.Context, reference string) (ocispec.Descriptor, error) {
	if err := d.check(); err != nil {
		return ocispec.Descriptor{}, err
	}
	index, err := d.readIndex()
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	if reference == "" {
		return d.only(ctx, index)
	}
	dgst := digest.Digest(reference)
	byDigest := CheckDigest(dgst) == nil
	var found *indexEntry
	for i := range index.Manifests {
		e := &index.Manifests[i]
		if byDigest && e.Digest == dgst {
			return e.plain(d.path)
		}
		if byDigest || e.tag() == "" || e.tag() != reference {
			continue
		}
		if found != nil && found.Digest != e.Digest {
			return ocispec.Descriptor{}, hint.With(errorf(ErrFormat, reference, "names two manifests in %s", quote(d.path)),
				"say which one by its digest: %s or %s", found.Digest, e.Digest)
		}
		found = e
	}
	switch {
	case found != nil:
		return found.plain(d.path)
	case byDigest:
		return d.describe(ctx, dgst)
	}
	return ocispec.Descriptor{}, index.listed(errorf(ErrNotFound, reference, "no such tag in %s", quote(d.path)))
}

// ResolveManifest implements [Fetcher].
func (d *Dir) ResolveManifest(ctx context.Context, reference string) (ocispec.Descriptor, []byte, error) {
	return resolveManifest(ctx, d, reference)
}

// only describes the one manifest that all entries list, but for those without a tag
// that name a subject: a signature beside a model is not meant.
func (d *Dir) only(ctx context.Context, x *indexFile) (ocispec.Descriptor, error) {
	var meant []*indexEntry
	several := false
	for i := range x.Manifests {
		if e := &x.Manifests[i]; len(x.Manifests) == 1 || e.tag() != "" || !d.isReferrer(ctx, e) {
			meant = append(meant, e)
		}
	}
	for _, e := range meant {
		several = several || e.Digest != meant[0].Digest
	}
	switch {
	case len(meant) == 0:
		return ocispec.Descriptor{}, errorf(ErrNotFound, "", "%s has no manifest", quote(d.path))
	case several:
		return ocispec.Descriptor{}, x.listed(errorf(ErrNotFound, "", "%s has several manifests", quote(d.path)))
	}
	desc, err := meant[0].plain(d.path)
	if err == nil && len(meant) == 1 && isTag(meant[0].tag()) {
		desc.Annotations = map[string]string{ocispec.AnnotationRefName: meant[0].tag()}
	}
	return desc, err
}

// isReferrer reports whether an entry's manifest is there and names a subject.
func (d *Dir) isReferrer(ctx context.Context, e *indexEntry) bool {
	if CheckDescriptor(e.Descriptor) != nil {
		return false
	}
	b, err := d.FetchManifest(ctx, e.Descriptor)
	if err != nil {
		return false
	}
	subject, _ := ReferrerOf(e.Descriptor, b)
	return subject != nil
}

// maxListed is how many of a folder's manifests are named in an error.
const maxListed = 10

// listed adds to the error for a tag that is not there what there is.
func (x *indexFile) listed(err error) error {
	var names []string
	for i := range x.Manifests {
		e := &x.Manifests[i]
		switch {
		case isTag(e.tag()):
			names = append(names, hint.Quote(e.tag()))
		case CheckDigest(e.Digest) == nil:
			names = append(names, string(e.Digest))
		}
	}
	if len(names) == 0 {
		return err
	}
	if n := len(names) - maxListed; n > 0 {
		names = append(names[:maxListed], fmt.Sprintf("and %d more", n))
	}
	return hint.With(err, "it has %s", hint.Text(strings.Join(names, ", ")))
}

// plain returns the descriptor of an entry that is going to be used.
func (e *indexEntry) plain(path string) (ocispec.Descriptor, error) {
	if err := CheckDescriptor(e.Descriptor); err != nil {
		return ocispec.Descriptor{}, &Error{Object: filepath.Join(path, ocispec.ImageIndexFile), Kind: ErrFormat, Err: err}
	}
	return plainDescriptor(e.Descriptor), nil
}

// plainDescriptor leaves out what a place says about a manifest.
func plainDescriptor(desc ocispec.Descriptor) ocispec.Descriptor {
	return ocispec.Descriptor{
		MediaType: desc.MediaType, Digest: desc.Digest, Size: desc.Size, ArtifactType: desc.ArtifactType,
	}
}

// describe finds out what kind of manifest a blob is.
func (d *Dir) describe(ctx context.Context, dgst digest.Digest) (ocispec.Descriptor, error) {
	size, err := d.Stat(ctx, dgst)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	none := errorf(ErrNotFound, string(dgst), "is a blob of %s and no manifest", quote(d.path))
	if size > MaxManifestBytes {
		return ocispec.Descriptor{}, none
	}
	desc := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: dgst, Size: size}
	b, err := ReadBlob(ctx, d, desc, MaxManifestBytes)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	var m struct {
		MediaType    string          `json:"mediaType"`
		ArtifactType string          `json:"artifactType"`
		Layers       json.RawMessage `json:"layers"`
		Manifests    json.RawMessage `json:"manifests"`
	}
	if json.Unmarshal(b, &m) != nil || (m.Layers == nil) == (m.Manifests == nil) {
		return ocispec.Descriptor{}, none
	}
	desc.ArtifactType = m.ArtifactType
	switch {
	case m.MediaType != "":
		desc.MediaType = m.MediaType
	case m.Manifests != nil:
		desc.MediaType = ocispec.MediaTypeImageIndex
	}
	return desc, nil
}

// FetchManifest implements [Fetcher].
func (d *Dir) FetchManifest(ctx context.Context, desc ocispec.Descriptor) ([]byte, error) {
	return ReadBlob(ctx, d, desc, MaxManifestBytes)
}

// PutManifest implements [Store]. The blobs that an image manifest lists must be
// there.
func (d *Dir) PutManifest(ctx context.Context, desc ocispec.Descriptor, content []byte, opts PutOptions) error {
	for _, tag := range opts.Tags {
		if !isTag(tag) || CheckDigest(digest.Digest(tag)) == nil {
			return fmt.Errorf("tag %s: %w", quote(tag), fs.ErrInvalid)
		}
	}
	if err := checkContent(desc, content); err != nil {
		return err
	}
	if err := d.complete(ctx, desc, content); err != nil {
		return err
	}
	if err := d.Push(ctx, manifestLayer(desc, content), Watch{}); err != nil {
		return err
	}
	return d.write(ctx, ocispec.ImageIndexFile, true, func() ([]byte, error) {
		// Once more: whoever deleted something meanwhile knew nothing of this manifest.
		if err := d.complete(ctx, desc, content); err != nil {
			return nil, err
		}
		if _, err := d.Stat(ctx, desc.Digest); err != nil {
			return nil, err
		}
		if opts.NoClobber {
			if err := CheckTags(ctx, d, desc.Digest, opts.Tags...); err != nil {
				return nil, err
			}
		}
		index, err := d.readIndex()
		if err != nil {
			return nil, err
		}
		index.put(desc, opts.Tags)
		return marshal(index)
	})
}

// manifestLayer is an image manifest as a blob.
func manifestLayer(desc ocispec.Descriptor, content []byte) Layer {
	return Layer{Descriptor: desc, Open: func(_ context.Context, off int64) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content[off:])), nil
	}}
}

// complete wants every blob of an image manifest to be in the folder, and no
// more of it: a process that is killed right behind a blob's rename leaves its
// journal.
func (d *Dir) complete(ctx context.Context, desc ocispec.Descriptor, content []byte) error {
	if desc.MediaType != ocispec.MediaTypeImageManifest {
		return nil
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(content, &m); err != nil {
		return &Error{Object: "image manifest", Kind: ErrFormat, Err: err}
	}
	for _, b := range append([]ocispec.Descriptor{m.Config}, m.Layers...) {
		size, err := d.Stat(ctx, b.Digest)
		if err != nil {
			return inManifest(err)
		}
		if size != b.Size {
			return errorf(ErrDigest, string(b.Digest), "is %d bytes in %s, want %d", size, quote(d.path), b.Size)
		}
		place.Tidy(filepath.Join(d.path, blobPath(b.Digest)))
	}
	place.Tidy(filepath.Join(d.path, ocispec.ImageLayoutFile))
	return nil
}
