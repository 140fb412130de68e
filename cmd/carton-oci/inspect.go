package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/urfave/cli/v2"
)

func inspectCommand(out *printer) *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "say what a model is",
		ArgsUsage: "SOURCE",
		Description: `Name, runner, inputs and outputs, platforms, licence, sizes by folder and the
largest members, from carton.toml and MANIFEST alone.`,
		Flags:  flags(nil, sourceFlags()),
		Action: command(out, runInspect),
	}
}

// largestShown is how many of the largest members are shown.
const largestShown = 10

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

func runInspect(c *cli.Context, s *session) error {
	src, err := s.openArg(c)
	if err != nil {
		return err
	}
	defer src.Close()
	info, err := carton.ReadInfo(c.Context, src.Source)
	if err != nil {
		return src.fail(err)
	}
	members, err := src.Members(c.Context)
	if err != nil {
		return src.fail(err)
	}
	d := describe(info, members)
	d.Reference, d.Digest, d.ModelHash = src.name, src.digest, src.Manifest().ModelHash()
	switch {
	case s.json:
		s.object(d)
	case s.quiet:
		s.linef("%s", d.ModelHash)
	default:
		s.printDescription(d, info)
	}
	return nil
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

func (s *session) printDescription(d description, info *carton.Info) {
	runner := d.Runner.Name + " " + d.Runner.FrameworkVersion
	if v := d.Runner.CompatVersion; v != nil {
		runner += fmt.Sprintf(" (compat version %d)", *v)
	}
	platforms := strings.Join(d.Platforms, ", ")
	if platforms == "" {
		platforms = "any"
	}
	s.fields(
		[2]string{"name", d.Name},
		[2]string{"description", d.Summary},
		[2]string{"runner", runner},
		[2]string{"platforms", platforms},
		[2]string{"license", d.License},
		[2]string{"repository", d.Repository},
		[2]string{"homepage", d.Homepage},
		[2]string{"self tests", fmt.Sprint(d.SelfTests)},
		[2]string{"examples", fmt.Sprint(d.Examples)},
		[2]string{"model hash", d.ModelHash},
		[2]string{"digest", d.Digest},
	)
	s.printTensors("INPUT", info.Inputs)
	s.printTensors("OUTPUT", info.Outputs)
	rows := [][]string{{"FOLDER", "SIZE", "MEMBERS"}}
	for _, f := range d.Folders {
		rows = append(rows, []string{f.Path, humanSize(f.Bytes), fmt.Sprint(f.Members)})
	}
	rows = append(rows, []string{"total", humanSize(d.Bytes), fmt.Sprint(d.Members)})
	s.linef("")
	s.table(rows)
	rows = [][]string{{"LARGEST", "SIZE"}}
	for _, m := range d.Largest {
		rows = append(rows, []string{m.Path, humanSize(*m.Size)})
	}
	s.linef("")
	s.table(rows)
}

func (s *session) printTensors(head string, specs []carton.TensorSpec) {
	if len(specs) == 0 {
		return
	}
	rows := [][]string{{head, "TYPE", "SHAPE", "DESCRIPTION"}}
	for _, t := range specs {
		rows = append(rows, []string{t.Name, string(t.DType), t.Shape.String(), t.Description})
	}
	s.linef("")
	s.table(rows)
}
