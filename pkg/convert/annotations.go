package convert

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"strings"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

// The annotations that are the mapping's own.
const (
	// AnnotationMapping is the number of the mapping that made an image manifest.
	AnnotationMapping = "run.carton.mapping"
	// AnnotationModelHash is the model hash, on the image manifest.
	AnnotationModelHash = "run.carton.model.hash"
	// AnnotationSymlink is a symlink's cleaned relative target, on a raw layer that
	// holds the content of its final target.
	AnnotationSymlink = "run.carton.symlink"
	// AnnotationMembers lists what a tar layer holds: see docs/mapping.md.
	AnnotationMembers = "run.carton.members"
	// AnnotationExtra marks a layer that is no member of the carton: a copy where
	// a registry's page looks for it. Its value is "true".
	AnnotationExtra = "run.carton.extra"

	annotationPrefix = "run.carton."
)

// Mapping is the number of the mapping that this package writes, and the only
// one that it reads.
const Mapping = "1"

// The keys that give a layer its name. Runtimes and tools each read a different
// one.
const (
	filepathCNAI = "org.cnai.model.filepath"
	filepathCNCF = "org.cncf.model.filepath"
)

// infoRules say where a field of carton.toml appears: the third table of
// docs/mapping.md. A field that is empty appears nowhere.
var infoRules = []struct {
	field      string // the key of a [carton.Field]
	annotation string // of the image manifest
	config     string // fields of the config's descriptor, comma-separated
	set        func(*Descriptor, string)
}{
	{"spec_version", "run.carton.spec-version", "", nil},
	{"runner.runner_name", "run.carton.runner.name", "", nil},
	{"runner.required_framework_version", "run.carton.runner.framework-version", "", nil},
	{"runner.runner_compat_version", "run.carton.runner.compat-version", "", nil},
	{"required_platforms", "run.carton.platforms", "", nil},
	{"model_name", ocispec.AnnotationTitle, "name, title", func(d *Descriptor, v string) { d.Name, d.Title = v, v }},
	{
		"short_description", ocispec.AnnotationDescription, "description",
		func(d *Descriptor, v string) { d.Description = v },
	},
	{"license", ocispec.AnnotationLicenses, "licenses", func(d *Descriptor, v string) { d.Licenses = []string{v} }},
	{"repository", ocispec.AnnotationSource, "sourceURL", func(d *Descriptor, v string) { d.SourceURL = v }},
	{"homepage", ocispec.AnnotationURL, "docURL", func(d *Descriptor, v string) { d.DocURL = v }},
}

// tableAnnotations are those that the table [annotations] of carton.toml may set:
// what no field of it says. Nothing else may come from a stranger's file.
var tableAnnotations = []string{
	ocispec.AnnotationBaseImageName, ocispec.AnnotationRevision, ocispec.AnnotationVersion,
	ocispec.AnnotationAuthors, ocispec.AnnotationVendor, ocispec.AnnotationDocumentation,
}

// infoTexts returns the values of carton.toml by their keys.
func infoTexts(info *carton.Info) map[string]string {
	texts := map[string]string{}
	for _, f := range info.Fields() {
		texts[f.Key] = f.Text
	}
	return texts
}

// manifestAnnotations returns the annotations of the image manifest.
func manifestAnnotations(info *carton.Info, modelHash string, opts Options) (map[string]string, error) {
	a := map[string]string{AnnotationMapping: Mapping, AnnotationModelHash: modelHash}
	texts := infoTexts(info)
	for _, rule := range infoRules {
		if v := texts[rule.field]; v != "" {
			a[rule.annotation] = v
		}
	}
	for _, key := range tableAnnotations {
		if v := info.Annotations[key]; v != "" {
			a[key] = v
		}
	}
	if !opts.Created.IsZero() {
		a[ocispec.AnnotationCreated] = created(opts.Created)
	}
	for k := range opts.Annotations {
		if strings.HasPrefix(k, annotationPrefix) {
			return nil, fmt.Errorf("annotation %s: the mapping itself sets what begins with %s", k, annotationPrefix)
		}
	}
	maps.Copy(a, opts.Annotations)
	return a, nil
}

// created writes a time as RFC 3339 asks, in UTC, to the second.
func created(t time.Time) string { return t.UTC().Truncate(time.Second).Format(time.RFC3339) }

// namedAs returns the annotations that give a layer its name.
func namedAs(name string) map[string]string {
	return map[string]string{filepathCNAI: name, filepathCNCF: name, ocispec.AnnotationTitle: name}
}

// fileMetadata is what other tools want to know about a raw layer's file:
// https://github.com/modelpack/model-spec/blob/v0.0.7/specs-go/v1/annotations.go
// All but name and size is constant.
type fileMetadata struct {
	Name     string `json:"name"` // the base name
	Mode     uint32 `json:"mode"`
	UID      uint32 `json:"uid"`
	GID      uint32 `json:"gid"`
	Size     int64  `json:"size"`
	MTime    string `json:"mtime"`
	Typeflag byte   `json:"typeflag"` // '0': a regular file
}

// metadataOf returns the value of the file metadata annotation.
func metadataOf(name string, size int64) string {
	return string(marshal(fileMetadata{
		Name: path.Base(name), Mode: 0o644, Size: size, MTime: "1980-01-01T00:00:00Z", Typeflag: '0',
	}))
}

// marshal writes JSON as encoding/json does, escapes too: the rule of the mapping.
func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("convert: " + err.Error()) // only types of this package, which marshal
	}
	return b
}
