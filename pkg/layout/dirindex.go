package layout

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/carton-oci/carton-oci/internal/jsonstream"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// indexFile is index.json. Entries stay as they were read, so that what other
// programs keep in theirs survives.
type indexFile struct {
	SchemaVersion int             `json:"schemaVersion"`
	MediaType     string          `json:"mediaType,omitempty"`
	ArtifactType  string          `json:"artifactType,omitempty"`
	Manifests     []indexEntry    `json:"manifests"`
	Subject       json.RawMessage `json:"subject,omitempty"`
	Annotations   json.RawMessage `json:"annotations,omitempty"`
}

// indexEntry is an entry of index.json: a descriptor, and its bytes where it
// has not been changed.
type indexEntry struct {
	ocispec.Descriptor
	raw json.RawMessage
}

func (e *indexEntry) UnmarshalJSON(b []byte) error {
	e.raw = bytes.Clone(b)
	return json.Unmarshal(b, &e.Descriptor)
}

func (e indexEntry) MarshalJSON() ([]byte, error) {
	if e.raw != nil {
		return e.raw, nil
	}
	return jsonstream.Marshal(e.Descriptor, "")
}

func (e *indexEntry) tag() string { return e.Annotations[ocispec.AnnotationRefName] }

// setTag names the entry; "" takes its name away.
func (e *indexEntry) setTag(tag string) {
	annotations := map[string]string{}
	for k, v := range e.Annotations {
		annotations[k] = v
	}
	delete(annotations, ocispec.AnnotationRefName)
	if tag != "" {
		annotations[ocispec.AnnotationRefName] = tag
	}
	if len(annotations) == 0 {
		annotations = nil
	}
	e.Annotations, e.raw = annotations, nil
}

// put lists desc, under the tags where there are any. A tag that another entry
// had is taken from it; what was listed stays listed.
func (x *indexFile) put(desc ocispec.Descriptor, tags []string) {
	touched := map[digest.Digest]bool{desc.Digest: true}
	for i := range x.Manifests {
		e := &x.Manifests[i]
		if e.Digest != desc.Digest && e.tag() != "" && slices.Contains(tags, e.tag()) {
			e.setTag("")
			touched[e.Digest] = true
		}
	}
	for _, tag := range tags {
		if x.find(desc.Digest, tag) >= 0 {
			continue
		}
		i := x.find(desc.Digest, "")
		if i < 0 {
			i = len(x.Manifests)
			x.Manifests = append(x.Manifests, indexEntry{Descriptor: plainDescriptor(desc)})
		}
		x.Manifests[i].setTag(tag)
	}
	if !slices.ContainsFunc(x.Manifests, func(e indexEntry) bool { return e.Digest == desc.Digest }) {
		x.Manifests = append(x.Manifests, indexEntry{Descriptor: plainDescriptor(desc)})
	}
	x.tidy(touched)
}

// tidy removes entries without a tag that say nothing: where another entry
// lists the same manifest.
func (x *indexFile) tidy(touched map[digest.Digest]bool) {
	listed := map[digest.Digest]bool{}
	for _, e := range x.Manifests {
		listed[e.Digest] = listed[e.Digest] || e.tag() != ""
	}
	x.Manifests = slices.DeleteFunc(x.Manifests, func(e indexEntry) bool {
		if e.tag() != "" || !touched[e.Digest] {
			return false
		}
		again := listed[e.Digest]
		listed[e.Digest] = true
		return again
	})
}

// find returns the entry of a manifest with a tag, or without one; -1 for none.
func (x *indexFile) find(dgst digest.Digest, tag string) int {
	return slices.IndexFunc(x.Manifests, func(e indexEntry) bool { return e.Digest == dgst && e.tag() == tag })
}

func (d *Dir) readIndex() (*indexFile, error) {
	name := filepath.Join(d.path, ocispec.ImageIndexFile)
	b, err := d.readFile(ocispec.ImageIndexFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errorf(ErrFormat, name, "is missing in an image layout")
	}
	if err != nil {
		return nil, err
	}
	return parseIndexFile(name, b)
}

// parseIndexFile reads the bytes of index.json; name is what errors call it.
func parseIndexFile(name string, b []byte) (*indexFile, error) {
	if err := checkJSON(b, manifestShape); err != nil {
		return nil, &Error{Object: name, Kind: ErrFormat, Err: err}
	}
	var x indexFile
	if err := json.Unmarshal(b, &x); err != nil {
		return nil, &Error{Object: name, Kind: ErrFormat, Err: err}
	}
	if x.SchemaVersion != 2 {
		return nil, errorf(ErrFormat, name, "got the schemaVersion %d, want 2", x.SchemaVersion)
	}
	return &x, nil
}

func emptyIndex() ([]byte, error) {
	return jsonstream.Marshal(&indexFile{
		SchemaVersion: 2, MediaType: ocispec.MediaTypeImageIndex,
		Manifests: []indexEntry{},
	}, "")
}
