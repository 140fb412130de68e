package main

import (
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/inspect"
)

func verifyCommand(out *printer) *cli.Command {
	return &cli.Command{
		Name:      "verify",
		Usage:     "check a carton, every byte of it",
		ArgsUsage: "SOURCE",
		UsageText: `carton-oci verify m.carton
carton-oci verify ghcr.io/org/m:1 --links`,
		Description: `Reads every member that is at hand and checks it against MANIFEST; checks
carton.toml and everything that it refers to. What is wrong inside weights is a
warning. What was not read is listed: linked members without --links, all but
carton.toml and tensor_data/index.toml with --no-content. Exit code 3 says that
something is wrong; a warning does not, and neither does what was not read. Of a
model artifact that holds no carton every layer is held against its digest.`,
		Flags: flags([]cli.Flag{
			&cli.BoolFlag{Name: "links", Usage: "read what LINKS names, too"},
			&cli.BoolFlag{Name: "no-content", Usage: "check presence and sizes, and read no content: nothing is verified"},
			&cli.StringFlag{Name: "model-hash", Usage: "refuse every model but `HEX`"},
		}, sourceFlags()),
		Action: command(out, runVerify),
	}
}

// verdict is what `verify --format json` prints.
type verdict struct {
	Reference string    `json:"reference"`
	Digest    string    `json:"digest,omitempty"` // of the image manifest, where it is an artifact
	ModelHash string    `json:"modelHash"`        // "" of a model that is no carton
	Plain     bool      `json:"plain,omitempty"`  // a model that is no carton: its layers were checked
	OK        bool      `json:"ok"`
	Members   int       `json:"members"` // of the carton
	Bytes     int64     `json:"bytes"`   // that were read
	Findings  []finding `json:"findings"`
	Complete  bool      `json:"complete"` // everything was read
	Unread    []string  `json:"unread"`   // members that were not read
	// UnreadLayers are tar layers of an artifact that were not read, with whatever
	// they hold besides members: names, modes, links.
	UnreadLayers []string `json:"unreadLayers,omitempty"`
}

type finding struct {
	Severity string `json:"severity"` // "error" or "warning"
	Path     string `json:"path,omitempty"`
	Message  string `json:"message"`
}

func runVerify(c *cli.Context, s *session) error {
	if err := notBoth(c, "no-content", "links"); err != nil {
		return err
	}
	want := c.String("model-hash")
	if c.IsSet("model-hash") && !modelHash.MatchString(want) {
		return usagef("verify", "--model-hash: got %s, want 64 lower-case hex digits", quoted(want))
	}
	src, err := s.openArg(c)
	if err != nil {
		return err
	}
	defer src.Close()
	if src.plain() {
		return s.verifyPlain(c, src)
	}
	if got := src.Manifest().ModelHash(); want != "" && got != want {
		return src.fail(&carton.Error{
			Path: carton.ManifestName, Kind: carton.ErrChecksum, Msg: fmt.Sprintf("got the model hash %s, want %s", got, want),
		})
	}
	s.showProgress("verify")
	report, err := carton.Verify(c.Context, src.Source, carton.VerifyOptions{
		Links: c.Bool("links"), NoContent: c.Bool("no-content"), Concurrency: s.opts.Concurrency, Progress: s.opts.Progress,
	})
	s.stopProgress()
	if err != nil {
		return src.fail(err)
	}
	v := verdict{
		Reference: src.name, Digest: src.digest, ModelHash: report.ModelHash, Members: report.Members, Bytes: report.Bytes,
		Findings: []finding{}, Unread: append([]string{}, report.Unread...),
	}
	var errs []error
	for _, f := range report.Findings {
		v.Findings = append(v.Findings, finding{f.Severity.String(), f.Path, f.Err.Error()})
		if f.Severity != carton.SeverityWarning {
			errs = append(errs, f.Err)
		}
	}
	if !c.Bool("no-content") {
		// What is in the weights is their author's affair: it is said, and no error.
		facts, err := inspect.Describe(c.Context, src, inspect.Options{Concurrency: s.opts.Concurrency, Local: true})
		if err != nil {
			return src.fail(err)
		}
		for _, n := range slices.Concat(facts.Notes, facts.Findings) {
			v.Findings = append(v.Findings, finding{carton.SeverityWarning.String(), n.Member, n.Member + ": " + n.Text})
		}
	}
	v.OK, v.Complete = len(errs) == 0, len(report.Unread) == 0
	if c.Bool("no-content") && src.artifact != nil {
		for _, d := range src.artifact.TarLayers() {
			v.UnreadLayers = append(v.UnreadLayers, d.Digest.String())
		}
	}
	s.printVerdict(v)
	if !v.OK {
		return src.fail(&foundError{errs})
	}
	return nil
}

// foundError is what verify found, as one error.
type foundError struct{ errs []error }

func (e *foundError) Error() string   { return count(len(e.errs), "error") }
func (e *foundError) Unwrap() []error { return e.errs }

func (s *session) printVerdict(v verdict) {
	switch {
	case s.json:
		s.object(v)
		return
	case s.quiet:
		for _, f := range v.Findings {
			s.linef("%s: %s", f.Severity, oneLine(f.Message))
		}
		return
	}
	for _, f := range v.Findings {
		s.linef("%s: %s", f.Severity, oneLine(f.Message))
	}
	for _, path := range v.Unread {
		s.linef("not read: %s", path)
	}
	for _, dgst := range v.UnreadLayers {
		s.linef("not read: the tar layer %s: its files, and their names, modes and links", dgst)
	}
	read := fmt.Sprintf("%s, %s", count(v.Members-len(v.Unread), "member"), errtext.Size(v.Bytes))
	verdict := "ok"
	if !v.OK {
		verdict = "broken"
	} else if len(v.Unread) > 0 {
		verdict = "not verified: nothing is wrong with what was read, which is not all"
	}
	carton := ""
	if v.Plain {
		carton = noCarton
	}
	s.fields(
		[2]string{"model hash", v.ModelHash},
		[2]string{"carton", carton},
		[2]string{"read", read},
		[2]string{"verdict", verdict},
	)
}
