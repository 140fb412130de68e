package convert

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/inspect"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// ModelConfig is an artifact's config: as much of the ModelPack model config as
// the mapping fills in.
// https://github.com/modelpack/model-spec/blob/v0.0.7/docs/config.md
type ModelConfig struct {
	Descriptor Descriptor `json:"descriptor"`
	Config     Details    `json:"config"`
	ModelFS    ModelFS    `json:"modelfs"`
}

// Descriptor says what the model is called, and where it is from.
type Descriptor struct {
	CreatedAt   string   `json:"createdAt,omitempty"` // RFC 3339
	Name        string   `json:"name,omitempty"`
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description,omitempty"`
	DocURL      string   `json:"docURL,omitempty"`
	SourceURL   string   `json:"sourceURL,omitempty"`
	Licenses    []string `json:"licenses,omitempty"`
}

// Details say what the weights are.
type Details struct {
	Format    string `json:"format,omitempty"`    // "safetensors"
	ParamSize string `json:"paramSize,omitempty"` // "8B"
	Precision string `json:"precision,omitempty"` // "bfloat16,float32"
}

// ModelFS lists a digest a layer, in the layers' order: the uncompressed tar's,
// or the blob's where it is raw.
type ModelFS struct {
	Type    string          `json:"type"` // "layers"
	DiffIDs []digest.Digest `json:"diffIds"`
}

// newConfig fills in the config.
func newConfig(info *carton.Info, details Details, diffIDs []digest.Digest, opts Options) ModelConfig {
	c := ModelConfig{Config: details, ModelFS: ModelFS{Type: "layers", DiffIDs: diffIDs}}
	texts := infoTexts(info)
	for _, rule := range infoRules {
		if v := texts[rule.field]; v != "" && rule.set != nil {
			rule.set(&c.Descriptor, v)
		}
	}
	if !opts.Created.IsZero() {
		c.Descriptor.CreatedAt = created(opts.Created)
	}
	return c
}

// describe finds out what the weights are. A carton has one config whatever its
// form, so PT2 archives are read also where they are compressed, which costs
// passes over them.
func describe(ctx context.Context, src carton.Source, members []carton.Member) (Details, []inspect.Note, error) {
	facts, err := inspect.DescribeMembers(ctx, src, members, inspect.Options{Through: true})
	if err != nil {
		return Details{}, nil, err
	}
	d := Details{Format: facts.Format, Precision: facts.Precision}
	if facts.Parameters >= 0 {
		d.ParamSize = inspect.ParamSize(facts.Parameters)
	}
	return d, slices.Concat(facts.Notes, facts.Findings), nil
}

// ParseModelConfig reads a config, of any family and whoever wrote it. What it
// doesn't know it ignores; "diff_ids", as older versions of the specification
// had it, is read as "diffIds", and so are those of an image's config. Errors
// wrap layout.ErrFormat.
func ParseModelConfig(b []byte) (*ModelConfig, error) {
	var c struct {
		ModelConfig
		ModelFS struct {
			ModelFS
			Legacy []digest.Digest `json:"diff_ids"`
		} `json:"modelfs"`
		RootFS struct {
			DiffIDs []digest.Digest `json:"diff_ids"`
		} `json:"rootfs"`
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if err := d.Decode(&c); err != nil {
		return nil, fmt.Errorf("config: %w: %w", layout.ErrFormat, err)
	}
	c.ModelConfig.ModelFS = c.ModelFS.ModelFS
	if c.ModelConfig.ModelFS.DiffIDs == nil {
		c.ModelConfig.ModelFS.DiffIDs = c.ModelFS.Legacy
	}
	if c.ModelConfig.ModelFS.DiffIDs == nil {
		c.ModelConfig.ModelFS.DiffIDs = c.RootFS.DiffIDs
	}
	return &c.ModelConfig, nil
}
