package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/inspect"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/urfave/cli/v2"
)

// What inspect and verify do with a model artifact that holds no carton.

// modelFolder is where a carton has its model.
const modelFolder = "model/"

// asModel is a plain artifact's files as they would lie in a carton, where what
// describes a model looks for them.
type asModel struct{ carton.Source }

func (a asModel) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	return a.Source.Open(ctx, strings.TrimPrefix(name, modelFolder))
}

func (a asModel) OpenRange(ctx context.Context, name string, off, n int64) (io.ReadCloser, error) {
	return a.Source.OpenRange(ctx, strings.TrimPrefix(name, modelFolder), off, n)
}

// plainFacts describes a plain artifact's files by their headers.
func (s *session) plainFacts(ctx context.Context, src *source, members []carton.Member) (*inspect.Facts, error) {
	moved := make([]carton.Member, len(members))
	for i, m := range members {
		m.Path = modelFolder + m.Path
		moved[i] = m
	}
	facts, err := inspect.DescribeMembers(ctx, asModel{src}, moved, inspect.Options{Concurrency: s.opts.Concurrency, Local: true})
	if err != nil {
		return nil, err
	}
	for _, notes := range [][]inspect.Note{facts.Notes, facts.Findings} {
		for i := range notes {
			notes[i].Member = strings.TrimPrefix(notes[i].Member, modelFolder)
		}
	}
	for i := range facts.Models {
		facts.Models[i].Member = strings.TrimPrefix(facts.Models[i].Member, modelFolder)
	}
	return facts, nil
}

func (s *session) inspectPlain(c *cli.Context, src *source) error {
	members, err := src.Members(c.Context)
	if err != nil {
		return src.fail(err)
	}
	config, err := src.artifact.Config(c.Context)
	if err != nil {
		if !errors.Is(err, layout.ErrFormat) {
			return src.fail(err)
		}
		config = &convert.ModelConfig{} // a config that is not as specified makes the model no worse
	}
	facts, err := s.plainFacts(c.Context, src, members)
	if err != nil {
		return src.fail(err)
	}
	what := config.Descriptor
	d := describe(&carton.Info{
		ModelName: firstOf(what.Title, what.Name), ShortDescription: what.Description, License: strings.Join(what.Licenses, ", "),
		Repository: what.SourceURL, Homepage: what.DocURL,
	}, members)
	for i := range d.Largest {
		if !src.artifact.Hashed(d.Largest[i].Path) {
			d.Largest[i].Hash = ""
		}
	}
	d.addFacts(facts)
	d.Reference, d.Digest = src.name, src.digest
	switch {
	case s.json:
		s.object(d)
		return nil
	case s.quiet:
		return src.fail(withHint(convert.ErrNoCarton, "it has no model hash; carton-oci resolve %s prints its digest", src.name))
	}
	s.fields(
		[2]string{"name", d.Name},
		[2]string{"description", d.Summary},
		[2]string{"carton", noCarton},
		[2]string{"formats", firstOf(shownShares(d.Formats), config.Config.Format)},
		[2]string{"precision", firstOf(shownShares(d.Precisions), config.Config.Precision)},
		[2]string{"parameters", firstOf(shownCount(d.Parameters), config.Config.ParamSize)},
		[2]string{"license", d.License},
		[2]string{"repository", d.Repository},
		[2]string{"homepage", d.Homepage},
		[2]string{"digest", d.Digest},
	)
	s.printModels(d.Models)
	s.printSizes(d)
	s.warnOf(append(facts.Notes, facts.Findings...))
	s.hintf("carton-oci pull %s --runner NAME --framework-version REQ makes a carton of it", hint.Quote(src.name))
	return nil
}

// firstOf returns the first text that is not empty.
func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// verifyPlain reads every layer.
func (s *session) verifyPlain(c *cli.Context, src *source) error {
	for _, flag := range []string{"model-hash", "links", "no-content"} {
		if c.IsSet(flag) {
			return src.fail(withHint(convert.ErrNoCarton, "--%s is about cartons", flag))
		}
	}
	members, err := src.Members(c.Context)
	if err != nil {
		return src.fail(err)
	}
	v := verdict{
		Reference: src.name, Digest: src.digest, Members: len(members), OK: true, Complete: true, Plain: true,
		Findings: []finding{}, Unread: []string{},
	}
	if err := src.artifact.VerifyLayers(c.Context, func(n int64) { v.Bytes += n }); err != nil {
		return src.fail(err)
	}
	facts, err := s.plainFacts(c.Context, src, members)
	if err != nil {
		return src.fail(err)
	}
	for _, n := range append(facts.Notes, facts.Findings...) {
		v.Findings = append(v.Findings, finding{carton.SeverityWarning.String(), n.Member, n.Member + ": " + n.Text})
	}
	s.printVerdict(v)
	return nil
}
