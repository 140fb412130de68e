package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/inspect"
)

// description is what `inspect --format json` prints.
type description struct {
	Reference   string       `json:"reference"`
	Digest      string       `json:"digest,omitempty"` // of the image manifest, where it is an artifact
	ModelHash   string       `json:"modelHash"`
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
	Format     string      `json:"format,omitempty"` // the one with the most bytes
	Formats    []share     `json:"formats"`          // most bytes first
	Precision  string      `json:"precision,omitempty"`
	Precisions []share     `json:"precisions"`
	Parameters *int64      `json:"parameters"` // null where no header tells
	Models     []modelItem `json:"models"`     // inside PT2 archives
	Notes      []noteItem  `json:"notes,omitempty"`
	// Findings are what looks wrong in PT2 archives.
	Findings []noteItem `json:"findings,omitempty"`
}

type share struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

type modelItem struct {
	Name         string        `json:"name"`
	Member       string        `json:"member"`
	TorchVersion string        `json:"torchVersion,omitempty"`
	Tensors      int           `json:"tensors"`
	Parameters   *int64        `json:"parameters"`
	AOTInductor  []backendItem `json:"aotInductor"`
}

type backendItem struct {
	Backend string `json:"backend"` // "" where it has no name
	Device  string `json:"device,omitempty"`
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

// addFacts fills in what the headers of weights say.
func (d *description) addFacts(f *inspect.Facts) {
	d.Format, d.Precision, d.Parameters = f.Format, f.Precision, known(f.Parameters)
	d.Formats, d.Precisions, d.Models = []share{}, []share{}, []modelItem{}
	for _, x := range f.Formats {
		d.Formats = append(d.Formats, share(x))
	}
	for _, x := range f.Precisions {
		d.Precisions = append(d.Precisions, share(x))
	}
	for _, m := range f.Models {
		item := modelItem{
			Name: m.Name, Member: m.Member, TorchVersion: m.Torch, Tensors: m.Tensors, Parameters: known(m.Parameters),
			AOTInductor: []backendItem{},
		}
		for _, b := range m.Backends {
			item.AOTInductor = append(item.AOTInductor, backendItem{b.Name, b.Device})
		}
		d.Models = append(d.Models, item)
	}
	d.Notes, d.Findings = noteItems(f.Notes), noteItems(f.Findings)
}

// known returns a count, nil where it is not known.
func known(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}

func describe(info *carton.Info, members []carton.Member) description {
	d := description{
		Name: info.ModelName, Summary: info.ShortDescription, Text: info.ModelDescription,
		License: info.License, Repository: info.Repository, Homepage: info.Homepage,
		Platforms: append([]string{}, info.RequiredPlatforms...), SpecVersion: info.SpecVersion,
		Runner: runner{
			Name: info.Runner.Name, FrameworkVersion: info.Runner.RequiredFrameworkVersion,
			CompatVersion: info.Runner.CompatVersion, Opts: info.Runner.Opts,
		},
		Inputs: tensorSpecs(info.Inputs), Outputs: tensorSpecs(info.Outputs),
		SelfTests: len(info.SelfTests), Examples: len(info.Examples), Members: len(members),
	}
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
	d.Largest = largest(members)
	return d
}

// largest returns the largest regular members, largest first.
func largest(members []carton.Member) []member {
	files := slices.DeleteFunc(slices.Clone(members), func(m carton.Member) bool { return m.Target != "" || m.Size < 0 })
	slices.SortStableFunc(files, func(a, b carton.Member) int { return cmp.Compare(b.Size, a.Size) })
	out := []member{}
	for _, m := range files[:min(len(files), largestShown)] {
		out = append(out, memberOf(m))
	}
	return out
}

func tensorSpecs(specs []carton.TensorSpec) []tensorSpec {
	out := []tensorSpec{}
	for _, t := range specs {
		out = append(out, tensorSpec{Name: t.Name, DType: string(t.DType), Shape: shapeValue(t.Shape), Description: t.Description})
	}
	return out
}

// shapeValue returns a shape as carton.toml has it.
func shapeValue(s carton.Shape) any {
	if s.Symbol != "" {
		return s.Symbol
	}
	dims := []any{}
	for _, d := range s.Dims {
		if d.Symbol != "" {
			dims = append(dims, d.Symbol)
		} else {
			dims = append(dims, d.Size)
		}
	}
	return dims
}
