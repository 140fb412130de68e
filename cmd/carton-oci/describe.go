package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/inspect"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
)

// description is what `inspect --format json` prints.
type description struct {
	subject
	carton.Info
	SelfTests int      `json:"selfTests"`
	Examples  int      `json:"examples"`
	Members   int      `json:"members"`
	Bytes     int64    `json:"bytes"`   // of the members whose size is known
	Folders   []folder `json:"folders"` // by first component of the path
	Largest   []member `json:"largest"`

	// Signatures is how many are listed beside an artifact, which nobody has verified.
	Signatures *int `json:"signatures,omitempty"`

	// What the headers of weights below model/ say.
	Format     string          `json:"format,omitempty"` // the one with the most bytes
	Formats    []inspect.Share `json:"formats"`          // most bytes first
	Precision  string          `json:"precision,omitempty"`
	Precisions []inspect.Share `json:"precisions"`
	Parameters *int64          `json:"parameters"` // null where no header tells
	Models     []modelItem     `json:"models"`     // inside PT2 archives, and of GGUF headers
	Notes      []inspect.Note  `json:"notes,omitempty"`
	// Findings are what looks wrong in PT2 archives.
	Findings []inspect.Note `json:"findings,omitempty"`
}

type modelItem struct {
	Name         string              `json:"name"`
	Member       string              `json:"member"`
	TorchVersion string              `json:"torchVersion,omitempty"`
	Tensors      int                 `json:"tensors"`
	Parameters   *int64              `json:"parameters"`
	AOTInductor  []modelfile.Backend `json:"aotInductor"`
	// What the header of a GGUF file says.
	Architecture  string `json:"architecture,omitempty"`
	Quantization  string `json:"quantization,omitempty"`
	ContextLength int64  `json:"contextLength,omitempty"` // in tokens
	License       string `json:"license,omitempty"`
	ChatTemplate  *bool  `json:"chatTemplate,omitempty"` // whether there is one
	Parts         int    `json:"parts,omitempty"`        // files that the model is split into
}

type folder struct {
	Path    string `json:"path"` // "model/", or a file's name
	Members int    `json:"members"`
	Bytes   int64  `json:"bytes"`
}

// describe says what src is. facts may be nil.
func describe(src *source, info *carton.Info, members []carton.Member, facts *inspect.Facts) description {
	d := description{
		subject:   src.subject(),
		Info:      *info,
		SelfTests: len(info.SelfTests), Examples: len(info.Examples), Members: len(members),
		Largest: listOf(largest(members), src.memberOf),
		Models:  []modelItem{},
	}
	d.RequiredPlatforms = append([]string{}, d.RequiredPlatforms...)
	d.Inputs, d.Outputs = append([]carton.TensorSpec{}, d.Inputs...), append([]carton.TensorSpec{}, d.Outputs...)
	d.addFolders(members)
	if facts != nil {
		d.Format, d.Formats = facts.Format, append([]inspect.Share{}, facts.Formats...)
		d.Precision, d.Precisions = facts.Precision, append([]inspect.Share{}, facts.Precisions...)
		d.Parameters, d.Models = known(facts.Parameters), listOf(facts.Models, modelItemOf)
		d.Notes, d.Findings = facts.Notes, facts.Findings
	}
	return d
}

// addFolders adds up the members by the first component of their paths.
func (d *description) addFolders(members []carton.Member) {
	folders := map[string]*folder{}
	for _, m := range members {
		name, _, inside := strings.Cut(m.Path, "/")
		if inside {
			name += "/"
		}
		f := folders[name]
		if f == nil {
			f = &folder{Path: name}
			folders[name] = f
		}
		f.Members++
		if m.Target == "" { // a symlink's size is its target's, which counts once
			f.Bytes += max(m.Size, 0)
			d.Bytes += max(m.Size, 0)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(folders)) {
		d.Folders = append(d.Folders, *folders[name])
	}
}

// largest returns the largest regular members, largest first.
func largest(members []carton.Member) []carton.Member {
	files := slices.DeleteFunc(slices.Clone(members),
		func(m carton.Member) bool { return m.Target != "" || m.Size < 0 })
	slices.SortStableFunc(files, func(a, b carton.Member) int { return cmp.Compare(b.Size, a.Size) })
	return files[:min(len(files), largestShown)]
}

func modelItemOf(m inspect.Model) modelItem {
	item := modelItem{
		Name: m.Name, Member: m.Member, TorchVersion: m.Torch, Tensors: m.Tensors, Parameters: known(m.Parameters),
		AOTInductor:  append([]modelfile.Backend{}, m.Backends...),
		Architecture: m.Architecture, Quantization: m.Quantization, ContextLength: m.Context, License: m.License,
		Parts: m.Parts,
	}
	if m.Architecture != "" {
		item.ChatTemplate = &m.ChatTemplate
	}
	return item
}

// known returns a count, nil where it is not known.
func known(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}
