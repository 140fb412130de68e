package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/inspect"
)

func (s *session) inspectCommand() *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "say what a model is",
		ArgsUsage: "SOURCE",
		UsageText: "carton-oci inspect ghcr.io/org/m:1",
		Description: `Name, runner, inputs and outputs, formats, precision and parameters of the
weights, what PT2 archives and GGUF files say of their models (architecture,
quantisation, context, chat template), platforms, licence, sizes by folder and
the largest members: from carton.toml, MANIFEST and the headers of weights. -q
prints the model hash alone, and reads no headers. A model artifact that holds
no carton is described by its config and the same headers.`,
		Flags:  s.flags(nil, s.sourceFlags()),
		Action: s.command(s.runInspect),
	}
}

// largestShown is how many of the largest members are shown.
const largestShown = 10

func (s *session) runInspect(c *cli.Context) error {
	src, err := s.look(c)
	if err != nil {
		return err
	}
	defer src.Close()
	if s.quiet && !s.json {
		if err := src.wantHash(); err != nil {
			return err
		}
	}
	signatures := s.countSignatures(c.Context, src, c.Args().Get(0))
	info, details, err := src.info(c.Context)
	if err != nil {
		return src.fail(err)
	}
	members, err := src.Members(c.Context)
	if err != nil {
		return src.fail(err)
	}
	s.warnUnlisted(src)
	var facts *inspect.Facts
	if !s.quiet || s.json {
		facts, err = inspect.DescribeMembers(c.Context, src, members, s.headers(src))
		if err != nil {
			return src.fail(err)
		}
	}
	d := describe(src, info, members, facts)
	d.Signatures = <-signatures
	s.result(d, []string{d.ModelHash}, func() {
		s.printDescription(d, src, details)
		s.warnOf(slices.Concat(facts.Notes, facts.Findings))
		s.hints(hint.Of(unlisted(facts.Notes))...)
		if src.plain() {
			s.hintf("carton-oci pull %s --runner NAME --framework-version REQ makes a carton of it",
				hint.Quote(src.name))
		}
	})
	return nil
}

// printDescription prints what is known of a model; where the headers of weights
// say nothing, what the details of the config say.
func (s *session) printDescription(d description, src *source, details convert.Details) {
	runner := strings.TrimSpace(d.Runner.Name + " " + d.Runner.RequiredFrameworkVersion)
	if d.Runner.Name == "" {
		runner = "" // of loose files: a framework's version alone tells nobody how they are loaded
	}
	if v := d.Runner.CompatVersion; v != nil {
		runner += fmt.Sprintf(" (compat version %d)", *v)
	}
	rows := [][2]string{
		{"name", d.ModelName},
		{"description", d.ShortDescription},
		{"carton", src.lacks()},
		{"runner", runner},
		{"formats", cmp.Or(shownShares(d.Formats), details.Format)},
		{"precision", cmp.Or(onlyShare(d.Precisions), details.Precision)},
		{"parameters", cmp.Or(shownCount(d.Parameters), details.ParamSize)},
	}
	if !src.plain() {
		rows = append(rows, shownPlatforms(d.RequiredPlatforms)...)
	}
	rows = append(rows, [][2]string{{"license", d.License}, {"repository", d.Repository}, {"homepage", d.Homepage}}...)
	if !src.plain() {
		rows = append(rows, [][2]string{
			{"self tests", fmt.Sprint(d.SelfTests)},
			{"examples", fmt.Sprint(d.Examples)},
		}...)
	}
	s.fields(append(rows, [][2]string{
		{"model hash", d.ModelHash},
		{"digest", d.Digest},
		{"signatures", shownSignatures(d.Signatures)},
	}...)...)
	s.printTensors("INPUT", d.Inputs)
	s.printTensors("OUTPUT", d.Outputs)
	s.printModels(d.Models)
	s.printWeights(d)
	s.printSizes(d)
}

// printWeights prints how much there is of each type of elements, where there is
// more than one.
func (s *session) printWeights(d description) {
	if len(d.Precisions) < 2 {
		return
	}
	rows, values := [][]string{{"PRECISION", "SIZE"}}, []int64{0}
	for _, x := range d.Precisions {
		rows, values = append(rows, []string{x.Name, errtext.Size(x.Bytes)}), append(values, x.Bytes)
	}
	s.linef("")
	s.barTable(rows, values)
}

func (s *session) printSizes(d description) {
	rows, values := [][]string{{"FOLDER", "SIZE", "MEMBERS"}}, []int64{0}
	for _, f := range d.Folders {
		rows, values = append(rows, []string{f.Path, errtext.Size(f.Bytes), fmt.Sprint(f.Members)}),
			append(values, f.Bytes)
	}
	s.linef("")
	s.barTable(append(rows, []string{"total", errtext.Size(d.Bytes), fmt.Sprint(d.Members)}), append(values, 0))
	rows, values = [][]string{{"LARGEST", "SIZE"}}, []int64{0}
	for _, m := range d.Largest {
		rows, values = append(rows, []string{m.Path, errtext.Size(*m.Size)}), append(values, *m.Size)
	}
	s.linef("")
	s.barTable(rows, values)
}

// shownPlatforms is a field of at most two platforms a line: three are wider
// than a terminal.
func shownPlatforms(platforms []string) [][2]string {
	if len(platforms) == 0 {
		return [][2]string{{"platforms", "any"}}
	}
	var lines [][2]string
	for pair := range slices.Chunk(platforms, 2) {
		lines = append(lines, [2]string{"", strings.Join(pair, ", ") + ","})
	}
	lines[0][0] = "platforms"
	last := &lines[len(lines)-1][1]
	*last = strings.TrimSuffix(*last, ",")
	return lines
}

// shownShares writes "float32 (1.5 MB), int64 (48 B)", of one alone its name, and
// of many the first few.
func shownShares(shares []inspect.Share) string {
	if len(shares) == 1 {
		return shares[0].Name
	}
	const most = 3
	var parts []string
	for _, x := range shares[:min(len(shares), most)] {
		parts = append(parts, fmt.Sprintf("%s (%s)", x.Name, errtext.Size(x.Bytes)))
	}
	text := strings.Join(parts, ", ")
	if n := len(shares) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// onlyShare is the name of the only share; of several there is a table.
func onlyShare(shares []inspect.Share) string {
	if len(shares) == 1 {
		return shares[0].Name
	}
	return ""
}

// shownCount writes "376.9K (376940)", "" where it is not known.
func shownCount(n *int64) string {
	if n == nil {
		return ""
	}
	short := inspect.ParamSize(*n)
	if *n < 1000 {
		return short
	}
	return fmt.Sprintf("%s (%d)", short, *n)
}

// printModels prints the models inside PT2 archives, and those of GGUF files.
func (s *session) printModels(models []modelItem) {
	if len(models) == 0 {
		return
	}
	rows := [][]string{{
		"MODEL", "ARCHITECTURE", "QUANTIZATION", "PARAMETERS", "CONTEXT", "CHAT TEMPLATE", "LICENSE",
		"TORCH", "AOTINDUCTOR", "MEMBER",
	}}
	for _, m := range models {
		var compiled []string
		for _, b := range m.AOTInductor {
			compiled = append(compiled, cmp.Or(b.Name, b.Device, "yes"))
		}
		params := "?"
		if m.Parameters != nil {
			params = inspect.ParamSize(*m.Parameters)
		}
		var context, template string
		if m.ContextLength > 0 {
			context = fmt.Sprint(m.ContextLength)
		}
		if m.ChatTemplate != nil {
			template = map[bool]string{true: "yes", false: "no"}[*m.ChatTemplate]
		}
		member := m.Member
		if m.Parts > 1 {
			member += fmt.Sprintf(" (%d parts)", m.Parts)
		}
		rows = append(rows, []string{
			m.Name, m.Architecture, m.Quantization, params, context, template, m.License, m.TorchVersion,
			strings.Join(compiled, ", "), member,
		})
	}
	s.linef("")
	s.table(withoutEmpty(rows))
}

// withoutEmpty leaves out the columns that hold nothing below their head.
func withoutEmpty(rows [][]string) [][]string {
	out := make([][]string, len(rows))
	for column := range rows[0] {
		empty := !slices.ContainsFunc(rows[1:], func(row []string) bool { return row[column] != "" })
		for i := range rows {
			if !empty {
				out[i] = append(out[i], rows[i][column])
			}
		}
	}
	return out
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
	s.table(withoutEmpty(rows))
}
