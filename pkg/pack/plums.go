package pack

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/carton-oci/carton-oci/internal/tomltext"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/modelfile/pmf"
)

// readTree reads a tree in the Plums Model Format, and takes what it says of
// itself where nobody said otherwise.
func (p *packer) readTree(files fs.FS) error {
	m, err := pmf.Read(files, pmf.Options{Strict: p.opts.Strict})
	var invalid *pmf.Invalid
	if errors.As(err, &invalid) && p.opts.AllowInvalid {
		for _, v := range invalid.Violations {
			p.warnf("%s", v)
		}
		p.warnf("is packed as a folder like any other: it breaks the rules of the Plums Model Format")
		return nil
	}
	if err != nil {
		return hint.With(badTree(err), "%s packs it as a folder like any other", hint.PackInvalid)
	}
	p.pmf = m
	for _, w := range m.Warnings {
		p.warnf("%s", w)
	}
	from := m.MetadataFile
	if p.keepsInfo() {
		return nil
	}
	p.take(&p.opts.ModelName, "model_name", m.Name, from)
	text := "Plums model by " + m.Producer.Name + " " + m.Producer.Version + ", training " + m.Training.Status
	if utf8.RuneCountInString(text) <= carton.ShortDescriptionChars {
		p.take(&p.opts.ShortDescription, "short_description", text, from)
	}
	if p.opts.ModelDescription == "" {
		p.opts.ModelDescription = describeTree(m)
		p.fill("model_description", "name, id, producer, training", from)
	}
	p.fill("pmf.id", m.ID, from)
	p.fill("pmf.training_status", m.Training.Status, from)
	return nil
}

// badTree gives the errors of a tree the kind that they have in a carton.
func badTree(err error) error {
	var invalid *pmf.Invalid
	if !errors.As(err, &invalid) {
		return err
	}
	kind := carton.ErrChecksum
	for _, v := range invalid.Violations {
		if v.Rule != pmf.RuleChecksum {
			kind = carton.ErrFormat
		}
	}
	return &carton.Error{Kind: kind, Err: err}
}

// describeTree says in Markdown what a tree says of itself.
func describeTree(m *pmf.Model) string {
	var b strings.Builder
	item := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "- %s: %s\n", key, value)
		}
	}
	fmt.Fprintf(&b, "A model in the Plums Model Format %s.\n\n", pmf.FormatVersion)
	item("name", m.Name)
	item("id", m.ID)
	item("producer", m.Producer.Name+" "+m.Producer.Version)
	training := m.Training.Status
	if e := m.Training.LatestEpoch; e != nil {
		training += ", epoch " + strconv.FormatInt(*e, 10)
	}
	item("training", training)
	var refs []string
	for _, c := range m.Checkpoints {
		refs = append(refs, c.Reference)
	}
	item("checkpoints", strings.Join(refs, ", "))
	item("latest checkpoint", m.Training.Latest)
	switch {
	case m.Nested != nil:
		item("initialised from", strings.TrimSpace("the model "+m.Nested.Name+" ("+m.Nested.ID+")"))
	case len(m.Initialisation) > 0:
		item("initialised from", m.Initialisation[0].Path)
	}
	return b.String()
}

// treeTable is a table of the tree's own words. Readers of cartons ignore tables
// that they don't know.
func treeTable(m *pmf.Model) string {
	var b strings.Builder
	b.WriteString("\n[pmf]\n")
	item := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s = %s\n", key, tomltext.Quote(value))
		}
	}
	item("format_version", pmf.FormatVersion)
	item("name", m.Name)
	item("id", m.ID)
	item("producer", m.Producer.Name)
	item("producer_version", m.Producer.Version)
	item("training_status", m.Training.Status)
	if e := m.Training.LatestEpoch; e != nil {
		fmt.Fprintf(&b, "latest_epoch = %d\n", *e)
	}
	item("latest_checkpoint", m.Training.Latest)
	item("configuration", m.Configuration)
	return b.String()
}

// askSums asks for the MD5 of the files that a tree records one of.
func (p *packer) askSums() {
	if p.pmf == nil {
		return
	}
	want := map[string]bool{}
	for _, s := range p.pmf.Sums() {
		want[modelFolder+s.Path] = true
	}
	for _, f := range p.files {
		end := p.final(f)
		end.sum = end.sum || want[f.path]
	}
}

// checkSums compares the MD5s that a tree records. All that differ are one
// error.
func (p *packer) checkSums() error {
	if p.pmf == nil {
		return nil
	}
	var found []pmf.Violation
	for _, s := range p.pmf.Sums() {
		if f := p.find(modelFolder + s.Path); f != nil {
			if v := s.Check(f.md5); v != nil {
				found = append(found, *v)
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	if p.opts.AllowInvalid {
		for _, v := range found {
			p.warnf("%s", v)
		}
		return nil
	}
	return hint.With(badTree(&pmf.Invalid{Violations: found}), "%s packs it all the same", hint.PackInvalid)
}
