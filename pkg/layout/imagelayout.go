package layout

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"sync"

	"github.com/carton-oci/carton-oci/internal/sha256hex"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// imageLayout is an image layout, in a folder or in an archive.
type imageLayout interface {
	Fetcher
	Stat(ctx context.Context, dgst digest.Digest) (int64, error)
	// Path is where it is, as errors call it.
	Path() string
	// open returns its index.
	open() (*indexFile, error)
	// subjects remembers what its manifests refer to.
	subjects() *subjects
}

// subjects are the subjects of manifests that were read, by their digests, which don't
// change: who asks for the referrers of one manifest after another reads each once.
type subjects struct {
	mu sync.Mutex
	of map[digest.Digest]digest.Digest // "" for one that names none
}

func (s *subjects) get(dgst digest.Digest) (subject digest.Digest, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	subject, known = s.of[dgst]
	return subject, known
}

func (s *subjects) put(dgst digest.Digest, subject *ocispec.Descriptor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[digest.Digest]digest.Digest{}
	}
	s.of[dgst] = ""
	if subject != nil {
		s.of[dgst] = subject.Digest
	}
}

// resolveIn is [Fetcher].Resolve. A digest is also found where no entry of index.json
// lists it, as long as the layout holds the manifest.
func resolveIn(ctx context.Context, l imageLayout, reference string) (ocispec.Descriptor, error) {
	index, err := l.open()
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	if reference == "" {
		return onlyIn(ctx, l, index)
	}
	dgst := digest.Digest(reference)
	byDigest := CheckDigest(dgst) == nil
	var found *indexEntry
	for i := range index.Manifests {
		e := &index.Manifests[i]
		if byDigest && e.Digest == dgst {
			return e.plain(l.Path())
		}
		if byDigest || e.tag() == "" || e.tag() != reference {
			continue
		}
		if found != nil && found.Digest != e.Digest {
			return ocispec.Descriptor{}, hint.With(errorf(ErrFormat, reference, "names two manifests in %s",
				quote(l.Path())),
				"say which one by its digest: %s or %s", found.Digest, e.Digest)
		}
		found = e
	}
	switch {
	case found != nil:
		return found.plain(l.Path())
	case byDigest:
		return describe(ctx, l, dgst)
	}
	return ocispec.Descriptor{}, index.listed(errorf(ErrNotFound, reference, "no such tag in %s", quote(l.Path())))
}

// ImageTagSuffix follows an artifact's tag in the tag of its image form.
const ImageTagSuffix = "-image"

// onlyIn describes the one manifest that all entries list, but for what belongs to
// another: entries without a tag that name a subject, such as a signature beside a model,
// the image form of a tag, and the tags that clients keep referrers and signatures of a
// digest under.
func onlyIn(ctx context.Context, l imageLayout, x *indexFile) (ocispec.Descriptor, error) {
	var meant []*indexEntry
	several := false
	given, referrers := map[string]bool{}, map[digest.Digest]bool{}
	refers := func(e *indexEntry) bool {
		is, known := referrers[e.Digest]
		if !known {
			is = isReferrer(ctx, l, e)
			referrers[e.Digest] = is
		}
		return is
	}
	for _, e := range x.Manifests {
		given[e.tag()] = true
	}
	for i := range x.Manifests {
		e := &x.Manifests[i]
		if err := ctx.Err(); err != nil {
			return ocispec.Descriptor{}, err
		}
		of, isImage := strings.CutSuffix(e.tag(), ImageTagSuffix)
		switch {
		case len(x.Manifests) == 1:
		case e.tag() == "" && refers(e), isImage && of != "" && given[of], namedForDigest(e.tag()):
			continue
		}
		meant = append(meant, e)
	}
	for _, e := range meant {
		several = several || e.Digest != meant[0].Digest
	}
	switch {
	case len(meant) == 0:
		return ocispec.Descriptor{}, errorf(ErrNotFound, "", "%s has no manifest", quote(l.Path()))
	case several:
		return ocispec.Descriptor{}, x.listed(errorf(ErrNotFound, "", "%s has several manifests", quote(l.Path())))
	}
	desc, err := meant[0].plain(l.Path())
	if err == nil && len(meant) == 1 && isTag(meant[0].tag()) {
		desc.Annotations = map[string]string{ocispec.AnnotationRefName: meant[0].tag()}
	}
	return desc, err
}

// namedForDigest reports whether a tag is one of those that clients keep referrers and
// signatures of a digest under: "sha256-…", "sha256-….sig".
func namedForDigest(tag string) bool {
	digits, ok := strings.CutPrefix(tag, "sha256-")
	digits, _, _ = strings.Cut(digits, ".")
	return ok && sha256hex.Is(digits)
}

// isReferrer reports whether an entry's manifest is there and names a subject.
func isReferrer(ctx context.Context, l imageLayout, e *indexEntry) bool {
	if CheckDescriptor(e.Descriptor) != nil {
		return false
	}
	b, err := l.FetchManifest(ctx, e.Descriptor)
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
		return ocispec.Descriptor{}, &Error{
			Object: filepath.Join(path, ocispec.ImageIndexFile), Kind: ErrFormat,
			Err: err,
		}
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
func describe(ctx context.Context, l imageLayout, dgst digest.Digest) (ocispec.Descriptor, error) {
	size, err := l.Stat(ctx, dgst)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	none := errorf(ErrNotFound, string(dgst), "is a blob of %s and no manifest", quote(l.Path()))
	if size > MaxManifestBytes {
		return ocispec.Descriptor{}, none
	}
	desc := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: dgst, Size: size}
	b, err := ReadBlob(ctx, l, desc, MaxManifestBytes)
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

// tagsIn is [Fetcher].Tags.
func tagsIn(l imageLayout) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		index, err := l.open()
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

// referrersIn is [Fetcher].Referrers.
func referrersIn(
	ctx context.Context, l imageLayout, subject ocispec.Descriptor, artifactType string,
) ([]ocispec.Descriptor, error) {
	index, err := l.open()
	if err != nil {
		return nil, err
	}
	list := ReferrerList{ArtifactType: artifactType}
	read := map[digest.Digest]bool{} // true of what was read as an index of referrers
	for i := range index.Manifests {
		e := &index.Manifests[i]
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		listing := e.tag() == ReferrersTag(subject.Digest)
		asList, again := read[e.Digest]
		if again && (asList || !listing) {
			continue
		}
		if e.Digest == subject.Digest || CheckDescriptor(e.Descriptor) != nil {
			continue
		}
		read[e.Digest] = listing
		if names, known := l.subjects().get(e.Digest); known && names != subject.Digest && !listing {
			continue
		}
		b, err := l.FetchManifest(ctx, e.Descriptor)
		switch {
		case err != nil && !isContent(err):
			return nil, err
		case err != nil:
			continue
		}
		if listing {
			if listed, err := ParseIndex(b); err == nil {
				if err := list.Add(listed.Manifests...); err != nil {
					return nil, err
				}
			}
		}
		named, desc := ReferrerOf(plainDescriptor(e.Descriptor), b)
		l.subjects().put(e.Digest, named)
		if named == nil || named.Digest != subject.Digest {
			continue
		}
		if err := list.Add(desc); err != nil {
			return nil, err
		}
	}
	return list.All, nil
}
