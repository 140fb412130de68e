package convert

import (
	"strings"

	"github.com/carton-oci/carton-oci/pkg/layout"
)

// format is how a layer's blob is made of its members.
type format string

const (
	// formatRaw: the blob is one member's bytes.
	formatRaw format = "raw"
	// formatTar, formatTarGzip, formatTarZstd: the blob is a tar, compressed.
	formatTar     format = "tar"
	formatTarGzip format = "tar+gzip"
	formatTarZstd format = "tar+zstd"
)

// compression returns what follows the "+".
func (f format) compression() layout.Compression {
	_, after, _ := strings.Cut(string(f), "+")
	return layout.Compression(after)
}

// mediaTypes are what one family calls things: the table of docs/mapping.md.
type mediaTypes struct {
	artifact string // artifactType of the image manifest
	config   string // media type of the config
	layer    string // what media types of layers begin with; the category follows
	metadata string // key of the annotation with a raw layer's file metadata
	// rawWeight is what a raw weight's media type ends with, after "v1".
	rawWeight string
	// rawOther reports whether anything but weights can be raw.
	rawOther bool
}

// families are the media types that are written and read.
//
// Specifications: https://github.com/modelpack/model-spec at v0.0.6 for cnai and
// v0.0.7 for cncf; the draft has no ".raw" and calls a raw weight by the bare
// name.
var families = map[Family]mediaTypes{
	FamilyCNAI: {
		artifact:  "application/vnd.cnai.model.manifest.v1+json",
		config:    "application/vnd.cnai.model.config.v1+json",
		layer:     "application/vnd.cnai.model.",
		metadata:  "org.cnai.model.file.metadata+json",
		rawWeight: ".raw",
		rawOther:  true,
	},
	FamilyCNCF: {
		artifact:  "application/vnd.cncf.model.manifest.v1+json",
		config:    "application/vnd.cncf.model.config.v1+json",
		layer:     "application/vnd.cncf.model.",
		metadata:  "org.cncf.model.file.metadata+json",
		rawWeight: ".raw",
		rawOther:  true,
	},
	FamilyDraft: {
		artifact: "application/vnd.cnai.model.manifest.v1+json",
		config:   "application/vnd.cnai.model.config.v1+json",
		layer:    "application/vnd.cnai.model.",
		metadata: "org.cnai.model.file.metadata+json",
	},
}

// canBeRaw reports whether the family has a type for a raw layer of c.
func (t mediaTypes) canBeRaw(c category) bool { return t.rawOther || c == categoryWeight }

// of returns the media type of a layer.
func (t mediaTypes) of(c category, f format) string {
	base := t.layer + string(c) + ".v1"
	if f != formatRaw {
		return base + "." + string(f)
	}
	return base + t.rawWeight
}

// runnerName returns what a raw layer's member is called that has no name, by what
// its media type ends with: Docker Model Runner's, which calls weights by their
// format. https://pkg.go.dev/github.com/docker/model-runner/pkg/distribution/modelpack
func runnerName(suffix string) string {
	switch suffix {
	case ".gguf", ".safetensors":
		return "model" + suffix
	}
	return ""
}

// parseMediaType reads a layer's media type of any family, the bare ones
// included. ok is false for a type that is none.
func parseMediaType(mediaType string) (c category, f format, ok bool) {
	rest, ok := strings.CutPrefix(mediaType, families[FamilyCNAI].layer)
	if !ok {
		if rest, ok = strings.CutPrefix(mediaType, families[FamilyCNCF].layer); !ok {
			return "", "", false
		}
	}
	for _, c := range categories {
		switch suffix, ok := strings.CutPrefix(rest, string(c)+".v1"); {
		case !ok:
		case suffix == "", suffix == ".raw", runnerName(suffix) != "":
			return c, formatRaw, true
		case suffix == ".tar", suffix == ".tar+gzip", suffix == ".tar+zstd":
			return c, format(suffix[1:]), true
		}
	}
	return "", "", false
}
