package client

import "github.com/opencontainers/go-digest"

// PushResult says what a push did. Its JSON is what `push --format json` prints.
type PushResult struct {
	// Reference is where the artifact is, as it was asked for.
	Reference string `json:"reference"`
	// Tags are all tags that point to it.
	Tags []string `json:"tags,omitempty"`
	// Digest is the image manifest's.
	Digest digest.Digest `json:"digest"`
	// Source is the artifact that was pushed from, nil where the carton was none.
	Source *SourceArtifact `json:"source,omitempty"`
	// ModelHash is the model's identity, in lower-case hex; "" of a copy of what is
	// no carton.
	ModelHash string `json:"modelHash"`
	// ArtifactType is the artifact's type.
	ArtifactType string `json:"artifactType"`
	// Size is the image manifest's size in bytes: with Digest and ArtifactType, a
	// descriptor.
	Size int64 `json:"size"`
	// Layers are the artifact's layers, in their order. Members of one content
	// have layers of one digest.
	Layers []PushedLayer `json:"layers"`
	// Image is the image form that was pushed beside it, or nil.
	Image *PushedImage `json:"image,omitempty"`
	// Signatures are there now, where it was signed.
	Signatures []Signed `json:"signatures,omitempty"`
	// With is what went along with a copy: see CopyOptions.Recursive.
	With []CopiedWith `json:"with,omitempty"`
	// BytesUploaded counts the bytes of blobs that went out in this run, those that
	// had to be sent again included.
	BytesUploaded int64 `json:"bytesUploaded"`
	// BytesResumed counts the bytes of blobs that an earlier run had sent, and that
	// this one did not send again.
	BytesResumed int64 `json:"bytesResumed,omitempty"`
	// BytesDownloaded counts the bytes of blobs and links that came from where the
	// carton is, to be sent or to be checked.
	BytesDownloaded int64 `json:"bytesDownloaded,omitempty"`
	// Warnings say what is wrong with the carton though it is pushed as it is: what the
	// format's loader fails on, shards that an index lists and the carton lacks, broken
	// headers of weights.
	Warnings []string `json:"warnings,omitempty"`
	// Seconds is how long the push took.
	Seconds float64 `json:"seconds"`
	// DryRun: nothing was sent.
	DryRun bool `json:"dryRun,omitempty"`
	// AlreadyThere: all of it was there, as it is; nothing was done.
	AlreadyThere bool `json:"alreadyThere,omitempty"`
}

// SourceArtifact is an artifact that was pushed from.
type SourceArtifact struct {
	// Reference is where it is; "" where [PushSource] was given it.
	Reference string `json:"reference,omitempty"`
	// Digest is its image manifest's.
	Digest digest.Digest `json:"digest"`
	// Copied says that it was pushed as it is. Else another artifact was made of the
	// carton, whose digest may be the same.
	Copied bool `json:"copied"`
}

// CopiedWith is a manifest that went along with a copy.
type CopiedWith struct {
	// Kind says why: "referrer", which names what is copied as its subject;
	// "signature", which cosign keeps under a tag of its own; "image", the image form of
	// an artifact that has no tag there; "entry", which an index lists.
	Kind string `json:"kind"`
	// Digest is the manifest's, MediaType and ArtifactType its types, Size its own size in bytes.
	Digest       digest.Digest `json:"digest"`
	MediaType    string        `json:"mediaType"`
	ArtifactType string        `json:"artifactType,omitempty"`
	Size         int64         `json:"size"`
	// Subject is the manifest that it belongs to.
	Subject digest.Digest `json:"subject"`
	// Tags are those that point to it.
	Tags []string `json:"tags,omitempty"`
}

// PushedLayer is one layer of an artifact that was pushed.
type PushedLayer struct {
	// Paths are the members that the layer holds, MANIFEST among them.
	Paths     []string      `json:"paths"`
	MediaType string        `json:"mediaType"`
	Digest    digest.Digest `json:"digest"`
	Size      int64         `json:"size"` // in bytes
	// Status is "uploaded", "exists" or "mounted", and after a dry run "exists" or
	// "missing".
	Status string `json:"status,omitempty"`
	// Extra: the layer is no member, but a copy for the page of a registry; Paths
	// has its name.
	Extra bool `json:"extra,omitempty"`
}

// Bytes returns the size of all blobs, each counted once.
func (r *PushResult) Bytes() int64 {
	var n int64
	seen := map[digest.Digest]bool{}
	for _, l := range r.Layers {
		if !seen[l.Digest] {
			seen[l.Digest] = true
			n += l.Size
		}
	}
	return n
}
