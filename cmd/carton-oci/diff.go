package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/inspect"
)

func (s *session) diffCommand() *cli.Command {
	run := s.command(s.runDiff)
	return &cli.Command{
		Name:      "diff",
		Usage:     "say in what two cartons differ",
		ArgsUsage: "A B",
		UsageText: "carton-oci diff m.carton ghcr.io/org/m:1",
		Description: `A and B may be any SOURCE. diff compares MANIFEST, carton.toml field by field,
and the tensors of every safetensors, GGUF and PT2 file that changed. Of those
it reads the headers alone: "other bytes" may mean that one number changed, or
all of them. It does not compare LINKS, which says where a carton's bytes are
and not what they are. With -q it prints nothing. Model files and folders that
are no carton are compared by their content, which is read for that: with each
other or with a carton, of which carton.toml is then left out.

Exit code 0 says that the model hashes, or the files, are the same, 1 that they
are not. Errors are 2 and up: what fails with 1 elsewhere fails with 2 here.`,
		Flags: s.flags(nil, s.sourceFlags()),
		Action: func(c *cli.Context) error {
			err := run(c)
			if s.failed != nil && (err == nil || errors.Is(err, errDifferent)) {
				err = s.failed // else 1 would say that all of it was told
			}
			if err != nil && !errors.Is(err, errDifferent) && exitCode(err) == exitFailed {
				return withCode(exitUsage, err)
			}
			return err
		},
	}
}

// errDifferent ends a diff of cartons that differ. It is not printed.
var errDifferent = withCode(exitFailed, errSilent)

// difference is what `diff --format json` prints.
type difference struct {
	A        subject               `json:"a"`
	B        subject               `json:"b"`
	Same     bool                  `json:"same"`
	Fields   []inspect.FieldChange `json:"fields"` // of carton.toml
	Added    []member              `json:"added"`
	Removed  []member              `json:"removed"`
	Renamed  []inspect.Rename      `json:"renamed"`
	Changed  []changedItem         `json:"changed"`
	Manifest string                `json:"manifest,omitempty"` // "other bytes" where only they differ
	Notes    []inspect.Note        `json:"notes,omitempty"`    // what could not be compared
}

type changedItem struct {
	Path string `json:"path"`
	A    member `json:"a"`
	B    member `json:"b"`
	// SameLayout says that both headers were read and have the same tensors.
	SameLayout bool         `json:"sameLayout"`
	Tensors    []tensorDiff `json:"tensors"`
}

type tensorDiff struct {
	Change string      `json:"change"` // added, removed, reshaped, retyped
	A      *tensorItem `json:"a,omitempty"`
	B      *tensorItem `json:"b,omitempty"`
}

func (s *session) runDiff(c *cli.Context) error {
	a, err := s.open(c, c.Args().Get(0))
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := s.open(c, c.Args().Get(1))
	if err != nil {
		return err
	}
	defer b.Close()
	loose := a.loose != nil || b.loose != nil
	d, err := inspect.Diff(c.Context, a, b, inspect.Options{Concurrency: s.concurrency, Local: true, Loose: loose})
	if err != nil {
		return fmt.Errorf("diff %s %s: %w", a.name, b.name, err)
	}
	switch {
	case s.json:
		s.object(differenceOf(a, b, d))
	case !s.quiet:
		s.printDifference(d)
	}
	if !d.Same {
		return errDifferent
	}
	return nil
}

func differenceOf(a, b *source, d *inspect.Difference) difference {
	out := difference{
		A: a.subject(), B: b.subject(), Same: d.Same,
		Fields: append([]inspect.FieldChange{}, d.Info...), Renamed: append([]inspect.Rename{}, d.Renamed...),
		Added: listOf(d.Added, memberOf), Removed: listOf(d.Removed, memberOf),
		Changed: listOf(d.Changed, changedItemOf),
		Notes:   d.Notes,
	}
	if onlyManifest(d) {
		out.Manifest = otherBytes
	}
	return out
}

func changedItemOf(c inspect.Change) changedItem {
	item := func(t *inspect.Tensor) *tensorItem {
		if t == nil {
			return nil
		}
		out := tensorItemOf(*t)
		return &out
	}
	return changedItem{
		Path: c.A.Path, A: memberOf(c.A), B: memberOf(c.B), SameLayout: c.Compared && len(c.Tensors) == 0,
		Tensors: listOf(c.Tensors,
			func(t inspect.TensorChange) tensorDiff { return tensorDiff{string(t.Kind), item(t.A), item(t.B)} }),
	}
}

const otherBytes = "other bytes"

// onlyManifest reports whether nothing but the bytes of MANIFEST differs: its
// order, its line ends.
func onlyManifest(d *inspect.Difference) bool {
	return !d.Same && len(d.Added)+len(d.Removed)+len(d.Renamed)+len(d.Changed) == 0
}

// printDifference prints a line a thing, and below a member the tensors that
// differ.
func (s *session) printDifference(d *inspect.Difference) {
	for _, m := range d.Removed {
		s.taggedf(styleBad, "removed  ", "%s (%s)", shownPath(m), errtext.Size(m.Size))
	}
	for _, m := range d.Added {
		s.taggedf(styleGood, "added    ", "%s (%s)", shownPath(m), errtext.Size(m.Size))
	}
	for _, r := range d.Renamed {
		s.taggedf(styleOdd, "renamed  ", "%s -> %s", r.From, r.To)
	}
	for _, c := range d.Changed {
		s.printChange(c, d)
	}
	if onlyManifest(d) {
		s.taggedf(styleOdd, "changed  ", "%s: the same members, %s", carton.ManifestName, otherBytes)
	}
	s.warnOf(d.Notes)
}

func (s *session) printChange(c inspect.Change, d *inspect.Difference) {
	sizes := fmt.Sprintf(" (%s -> %s)", errtext.Size(c.A.Size), errtext.Size(c.B.Size))
	if c.A.Size == c.B.Size {
		sizes = fmt.Sprintf(" (%s)", errtext.Size(c.A.Size))
	}
	name := c.A.Path
	if c.B.Path != name {
		name += " -> " + c.B.Path
	}
	switch {
	case c.A.Target != c.B.Target:
		s.taggedf(styleOdd, "changed  ", "%s, was %s", shownPath(c.B), shownPath(c.A))
	case c.A.Path == carton.InfoName && len(d.Info) > 0:
		s.taggedf(styleOdd, "changed  ", "%s", c.A.Path)
		rows := [][]string{}
		for _, f := range d.Info {
			rows = append(rows, []string{"  " + f.Field, cmp.Or(f.A, "missing") + " -> " + cmp.Or(f.B, "missing")})
		}
		s.table(rows)
	case c.A.Path == carton.InfoName && !noted(d, c.A.Path):
		s.taggedf(styleOdd, "changed  ", "%s: the same fields, %s", c.A.Path, otherBytes)
	case c.Compared && len(c.Tensors) == 0:
		s.taggedf(styleOdd, "changed  ", "%s%s: same layout, %s", name, sizes, otherBytes)
	default:
		s.taggedf(styleOdd, "changed  ", "%s%s", name, sizes)
		s.printTensorChanges(c.Tensors)
	}
}

// noted reports whether a member could not be compared.
func noted(d *inspect.Difference, path string) bool {
	return slices.ContainsFunc(d.Notes, func(n inspect.Note) bool { return n.Member == path })
}

func (s *session) printTensorChanges(changes []inspect.TensorChange) {
	var rows [][]string
	for _, t := range changes {
		x := t.A
		if x == nil {
			x = t.B
		}
		what := shownType(x.DType) + " " + shownShape(x.Shape)
		if t.A != nil && t.B != nil {
			what += " -> " + shownType(t.B.DType) + " " + shownShape(t.B.Shape)
		}
		name := x.Name
		if x.Model != "" {
			name += " (" + x.Model + ")"
		}
		rows = append(rows, []string{"  " + string(t.Kind), name, what})
	}
	if len(rows) > 0 {
		s.table(rows)
	}
}
