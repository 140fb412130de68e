package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/inspect"
)

func (s *session) verifyCommand() *cli.Command {
	var o carton.VerifyOptions
	var want string
	var ask askedOfVerify
	return &cli.Command{
		Name:      "verify",
		Usage:     "check a carton, every byte of it, and who signed it",
		ArgsUsage: "SOURCE",
		UsageText: `carton-oci verify m.carton
carton-oci verify ghcr.io/org/m:1 --links
carton-oci verify ghcr.io/org/m:1 --key org.pub`,
		Description: `Reads every member that is at hand and checks it against MANIFEST; checks
carton.toml and everything that it refers to. What is wrong inside weights is a
warning. What was not read is listed: linked members without --links, all but
carton.toml and tensor_data/index.toml with --no-content. Exit code 3 says that
something is wrong; a warning does not, and neither does what was not read. Of a
model artifact that holds no carton every layer is held against its digest.

With --key or --certificate-chain it also says who signed: exit code 5 where it
is not signed by whom was asked for. Of what is in a registry MANIFEST and the
signature are read then, and with --content the rest too.`,
		Flags: s.flags([]cli.Flag{
			yes(&o.Links, "links", "read what LINKS names, too"),
			yes(&o.NoContent, "no-content", "check presence and sizes, and read no content: nothing is verified"),
			yes(&ask.content, "content", "with --key: read the content of what is in a registry, too"),
			modelHash(&want),
		}, trustFlags(&ask.words), s.sourceFlags()),
		Action: s.command(func(c *cli.Context) error { return s.runVerify(c, o, ask, want) }),
	}
}

// verdict is what `verify --format json` prints.
type verdict struct {
	subject
	Plain    bool      `json:"plain,omitempty"` // a model that is no carton: its layers were checked
	OK       bool      `json:"ok"`
	Members  int       `json:"members"` // of the carton
	Bytes    int64     `json:"bytes"`   // that were read
	Findings []finding `json:"findings"`
	Complete bool      `json:"complete"` // everything was read
	Unread   []string  `json:"unread"`   // members that were not read
	// UnreadLayers are tar layers of an artifact that were not read, with whatever
	// they hold besides members: names, modes, links.
	UnreadLayers []string `json:"unreadLayers,omitempty"`
	// Signatures are those that were found where one was asked for, and NotCovered what
	// the ones that count say nothing of.
	Signatures []signatureItem `json:"signatures,omitempty"`
	NotCovered []string        `json:"notCovered,omitempty"`
}

type finding struct {
	Severity string `json:"severity"` // "error" or "warning"
	Path     string `json:"path,omitempty"`
	Message  string `json:"message"`
}

func (s *session) runVerify(c *cli.Context, o carton.VerifyOptions, ask askedOfVerify, want string) error {
	if err := cmp.Or(notBoth(c, "no-content", "links"), notBoth(c, "no-content", "content")); err != nil {
		return err
	}
	src, err := s.openSigned(c, &ask)
	if err != nil {
		return err
	}
	defer src.Close()
	o.NoContent = o.NoContent || ask.asked != nil && !ask.content && !o.Links && ask.far
	v := verdict{subject: src.subject(), Plain: src.plain(), Findings: []finding{}, Unread: []string{}}
	v.Signatures, v.NotCovered = ask.found(src)
	var wrong []error
	if v.Plain && o.NoContent && ask.asked != nil {
		v.Unread = append(v.Unread, "all layers")
	} else if v.Plain {
		err = verifyLayers(c, src, &v)
	} else {
		wrong, err = s.verifyMembers(c, src, o, want, &v)
	}
	if err != nil {
		return src.fail(err)
	}
	if !o.NoContent {
		// What is in the weights is their author's affair: it is said, and no error.
		facts, err := inspect.Describe(c.Context, src, s.headers(src))
		if err != nil {
			return src.fail(err)
		}
		for _, n := range slices.Concat(facts.Notes, facts.Findings) {
			v.Findings = append(v.Findings, finding{
				carton.SeverityWarning.String(), n.Member,
				n.Member + ": " + n.Text,
			})
		}
	}
	v.OK, v.Complete = len(wrong) == 0, len(v.Unread) == 0
	s.printVerdict(v, src)
	if !v.OK {
		return src.fail(&listedError{count(len(wrong), "error"), errors.Join(wrong...)})
	}
	return nil
}

// verifyMembers holds a carton's members against MANIFEST. It returns what is
// wrong, besides in v.
func (s *session) verifyMembers(
	c *cli.Context, src *source, o carton.VerifyOptions, want string, v *verdict,
) (wrong []error, err error) {
	if want != "" && v.ModelHash != want {
		return nil, &carton.Error{
			Path: carton.ManifestName, Kind: carton.ErrChecksum,
			Msg: fmt.Sprintf("got the model hash %s, want %s", v.ModelHash, want),
		}
	}
	s.showProgress("verify")
	o.Concurrency, o.Progress = s.concurrency, s.progress
	report, err := carton.Verify(c.Context, src.Source, o)
	s.stopProgress()
	if err != nil {
		return nil, err
	}
	v.Members, v.Bytes, v.Unread = report.Members, report.Bytes, append(v.Unread, report.Unread...)
	for _, f := range report.Findings {
		v.Findings = append(v.Findings, finding{f.Severity.String(), f.Path, f.Err.Error()})
		if f.Severity != carton.SeverityWarning {
			wrong = append(wrong, f.Err)
		}
	}
	if o.NoContent && src.artifact != nil {
		for _, d := range src.artifact.TarLayers() {
			v.UnreadLayers = append(v.UnreadLayers, d.Digest.String())
		}
	}
	return wrong, nil
}

// verifyLayers reads every layer of an artifact that holds no carton.
func verifyLayers(c *cli.Context, src *source, v *verdict) error {
	for _, flag := range []string{"model-hash", "links", "no-content"} {
		if c.IsSet(flag) {
			return withHint(convert.ErrNoCarton, "--%s is about cartons", hint.Text(flag))
		}
	}
	members, err := src.Members(c.Context)
	v.Members = len(members)
	if err != nil {
		return err
	}
	return src.artifact.VerifyLayers(c.Context, func(n int64) { v.Bytes += n })
}

// unreadLines say what was not read: one line where that is all of it, as it is of a
// registry whose signatures were asked for.
func unreadLines(v verdict) []string {
	if len(v.Signatures) > 0 && len(v.Unread) > 0 && len(v.Unread) == v.Members {
		what := count(v.Members, "member")
		if n := len(v.UnreadLayers); n > 0 {
			what += fmt.Sprintf(", %s with names, modes and links", count(n, "tar layer"))
		}
		return []string{"not read: the content (" + what + "); --content reads it"}
	}
	var lines []string
	for _, path := range v.Unread {
		lines = append(lines, "not read: "+path)
	}
	for _, dgst := range v.UnreadLayers {
		lines = append(lines, fmt.Sprintf("not read: the tar layer %s: its files, and their names, modes and links",
			dgst))
	}
	return lines
}

func (s *session) printVerdict(v verdict, src *source) {
	lines := listOf(v.Findings, func(f finding) string { return f.Severity + ": " + oneLine(f.Message) })
	s.result(v, lines, func() {
		lines = append(lines, unreadLines(v)...)
		lines = append(lines, signatureLines(v)...)
		for _, line := range lines {
			s.linef("%s", line)
		}
		verdict := "ok"
		if !v.OK {
			verdict = "broken"
		} else if len(v.Unread) > 0 && len(v.Signatures) > 0 {
			verdict = "signed, and so is every hash of the content, which was not read"
		} else if len(v.Signatures) > 0 {
			verdict = "ok, and signed"
		} else if len(v.Unread) > 0 {
			verdict = "not verified: nothing is wrong with what was read, which is not all"
		}
		s.fields(
			[2]string{"model hash", v.ModelHash},
			[2]string{"carton", src.lacks()},
			[2]string{"read", fmt.Sprintf("%s, %s", count(v.Members-len(v.Unread), "member"), errtext.Size(v.Bytes))},
			[2]string{"verdict", verdict},
		)
	})
}
