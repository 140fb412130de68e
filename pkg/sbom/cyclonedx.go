package sbom

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"net/url"
	"strings"

	"github.com/carton-oci/carton-oci/internal/jsonstream"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/inspect"
)

// MediaType is that of the document.
const MediaType = "application/vnd.cyclonedx+json"

const specVersion = "1.6"

// Model is what is described.
type Model struct {
	Manifest *carton.Manifest
	Info     *carton.Info
	// Members say how large files are, and which are symlinks; may be nil.
	Members []carton.Member
	// Facts are what the headers of weights say; may be nil.
	Facts *inspect.Facts
}

type document struct {
	Format   string      `json:"bomFormat"`
	Spec     string      `json:"specVersion"`
	Serial   string      `json:"serialNumber,omitempty"`
	Version  int         `json:"version"`
	Metadata metadata    `json:"metadata"`
	Files    []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type        string       `json:"type"`
	Ref         string       `json:"bom-ref"`
	Name        string       `json:"name"`
	Description string       `json:"description,omitempty"`
	Hashes      []hash       `json:"hashes,omitempty"`
	Licenses    []license    `json:"licenses,omitempty"`
	References  []reference  `json:"externalReferences,omitempty"`
	Card        *modelCard   `json:"modelCard,omitempty"`
	Properties  []properties `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

// license is an SPDX expression, or a name where it is none.
type license struct {
	Expression string        `json:"expression,omitempty"`
	License    *namedLicense `json:"license,omitempty"`
}

type namedLicense struct {
	Name string `json:"name"`
}

type reference struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

type modelCard struct {
	Parameters modelParameters `json:"modelParameters"`
}

type modelParameters struct {
	Architecture string   `json:"modelArchitecture,omitempty"`
	Inputs       []format `json:"inputs,omitempty"`
	Outputs      []format `json:"outputs,omitempty"`
}

type format struct {
	Format string `json:"format"`
}

type properties struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// CycloneDX returns the document of a model, indented for people.
func CycloneDX(m Model) ([]byte, error) {
	doc := document{Format: "CycloneDX", Spec: specVersion, Version: 1, Files: files(m)}
	doc.Metadata.Component = describe(m)
	content, err := jsonstream.Marshal(doc, "  ")
	if err != nil {
		return nil, err
	}
	doc.Serial = serial(append(content, '\n'))
	content, err = jsonstream.Marshal(doc, "  ")
	return append(content, '\n'), err
}

// describe describes the model itself.
func describe(m Model) component {
	info := m.Info
	c := component{
		Type: "machine-learning-model", Ref: "model:" + m.Manifest.ModelHash(), Name: cmp.Or(info.ModelName, "model"),
		Description: info.ShortDescription,
		Hashes:      []hash{{"SHA-256", m.Manifest.ModelHash()}},
	}
	switch {
	case info.License == "":
	case carton.CheckLicense(info.License) == nil:
		c.Licenses = []license{{Expression: info.License}}
	default:
		c.Licenses = []license{{License: &namedLicense{info.License}}}
	}
	for _, r := range []reference{{"vcs", info.Repository}, {"website", info.Homepage}} {
		if u, err := url.Parse(r.URL); err == nil && u.IsAbs() {
			c.References = append(c.References, r)
		}
	}
	parameters := modelParameters{Inputs: formats(info.Inputs), Outputs: formats(info.Outputs)}
	if m.Facts != nil && len(m.Facts.Models) > 0 {
		parameters.Architecture = m.Facts.Models[0].Architecture
	}
	c.Card = &modelCard{parameters}
	c.Properties = about(m)
	return c
}

// formats says what tensors go in or come out: "image: float32 [1, 3, 224, 224]".
func formats(specs []carton.TensorSpec) []format {
	var list []format
	for _, t := range specs {
		list = append(list, format{fmt.Sprintf("%s: %s %s", t.Name, t.DType, t.Shape)})
	}
	return list
}

// about is what CycloneDX has no field for, under names of carton-oci's own.
func about(m Model) []properties {
	rows := []properties{
		{"runner", m.Info.Runner.Name},
		{"requiredFrameworkVersion", m.Info.Runner.RequiredFrameworkVersion},
		{"requiredPlatforms", strings.Join(m.Info.RequiredPlatforms, ",")},
	}
	if f := m.Facts; f != nil {
		rows = append(rows, properties{"format", f.Format}, properties{"precision", f.Precision})
		if f.Parameters >= 0 {
			rows = append(rows, properties{"parameters", fmt.Sprint(f.Parameters)})
		}
	}
	var list []properties
	for _, row := range rows {
		if row.Value != "" {
			list = append(list, properties{"carton-oci:" + row.Name, row.Value})
		}
	}
	return list
}

// files lists MANIFEST's members in its order.
func files(m Model) []component {
	members := map[string]carton.Member{}
	for _, x := range m.Members {
		members[x.Path] = x
	}
	list := []component{}
	for _, e := range m.Manifest.Entries() {
		c := component{Type: "file", Ref: "member:" + e.Path, Name: e.Path, Hashes: []hash{{"SHA-256", e.Hash}}}
		if x, ok := members[e.Path]; ok {
			if x.Target != "" {
				c.Properties = append(c.Properties, properties{"carton-oci:symlink", x.Target})
			}
			if x.Size >= 0 {
				c.Properties = append(c.Properties, properties{"carton-oci:size", fmt.Sprint(x.Size)})
			}
		}
		list = append(list, c)
	}
	return list
}

// serial makes a UUID of version 8 of the content.
// https://www.rfc-editor.org/rfc/rfc9562#name-uuid-version-8
func serial(content []byte) string {
	b := sha256.Sum256(content)
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}
