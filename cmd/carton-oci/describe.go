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
	Name        string       `json:"name,omitempty"`
	Summary     string       `json:"shortDescription,omitempty"`
	Text        string       `json:"modelDescription,omitempty"`
	License     string       `json:"license,omitempty"`
	Repository  string       `json:"repository,omitempty"`
	Homepage    string       `json:"homepage,omitempty"`
	Platforms   []string     `json:"requiredPlatforms"` // none: any
	SpecVersion int          `json:"specVersion"`
	Runner      runner       `json:"runner"`
	Inputs      []tensorSpec `json:"inputs"`
	Outputs     []tensorSpec `json:"outputs"`
	SelfTests   int          `json:"selfTests"`
	Examples    int          `json:"examples"`
	Members     int          `json:"members"`
	Bytes       int64        `json:"bytes"`   // of the members whose size is known
	Folders     []folder     `json:"folders"` // by first component of the path
	Largest     []member     `json:"largest"`

	// What the headers of weights below model/ say.
	Format     string          `json:"format,omitempty"` // the one with the most bytes
	Formats    []inspect.Share `json:"formats"`          // most bytes first
	Precision  string          `json:"precision,omitempty"`
	Precisions []inspect.Share `json:"precisions"`
	Parameters *int64          `json:"parameters"` // null where no header tells
	Models     []modelItem     `json:"models"`     // inside PT2 archives
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
}

type runner struct {
	Name             string         `json:"name"`
	FrameworkVersion string         `json:"requiredFrameworkVersion"`
	CompatVersion    *uint64        `json:"compatVersion,omitempty"`
	Opts             map[string]any `json:"opts,omitempty"`
}

type tensorSpec struct {
	Name        string `json:"name"`
	DType       string `json:"dtype"`
	Shape       any    `json:"shape"` // a symbol, or a list of symbols and lengths
	Description string `json:"description,omitempty"`
}

type folder struct {
	Path    string `json:"path"` // "model/", or a file's name
	Members int    `json:"members"`
	Bytes   int64  `json:"bytes"`
}

// describe says what src is. facts may be nil.
func describe(src *source, info *carton.Info, members []carton.Member, facts *inspect.Facts) description {
	d := description{
		subject: src.subject(),
		Name:    info.ModelName, Summary: info.ShortDescription, Text: info.ModelDescription,
		License: info.License, Repository: info.Repository, Homepage: info.Homepage,
		Platforms: append([]string{}, info.RequiredPlatforms...), SpecVersion: info.SpecVersion,
		Runner: runner{
			Name: info.Runner.Name, FrameworkVersion: info.Runner.RequiredFrameworkVersion,
			CompatVersion: info.Runner.CompatVersion, Opts: info.Runner.Opts,
		},
		Inputs: listOf(info.Inputs, tensorSpecOf), Outputs: listOf(info.Outputs, tensorSpecOf),
		SelfTests: len(info.SelfTests), Examples: len(info.Examples), Members: len(members),
		Largest: listOf(largest(members), src.memberOf),
		Models:  []modelItem{},
	}
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
	files := slices.DeleteFunc(slices.Clone(members), func(m carton.Member) bool { return m.Target != "" || m.Size < 0 })
	slices.SortStableFunc(files, func(a, b carton.Member) int { return cmp.Compare(b.Size, a.Size) })
	return files[:min(len(files), largestShown)]
}

func modelItemOf(m inspect.Model) modelItem {
	return modelItem{
		Name: m.Name, Member: m.Member, TorchVersion: m.Torch, Tensors: m.Tensors, Parameters: known(m.Parameters),
		AOTInductor: append([]modelfile.Backend{}, m.Backends...),
	}
}

func tensorSpecOf(t carton.TensorSpec) tensorSpec {
	return tensorSpec{Name: t.Name, DType: string(t.DType), Shape: shapeValue(t.Shape), Description: t.Description}
}

// shapeValue returns a shape as carton.toml has it.
func shapeValue(s carton.Shape) any {
	if s.Symbol != "" {
		return s.Symbol
	}
	return listOf(s.Dims, func(d carton.Dim) any {
		if d.Symbol != "" {
			return d.Symbol
		}
		return d.Size
	})
}

// known returns a count, nil where it is not known.
func known(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}
