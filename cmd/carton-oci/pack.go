package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/place"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/modelfile/pmf"
	"github.com/carton-oci/carton-oci/pkg/pack"
)

func (s *session) packCommand() *cli.Command {
	var o pack.Options
	var file string
	var force, git bool
	return &cli.Command{
		Name:      "pack",
		Usage:     "make a carton of a folder, of model files, or of hf:ORG/NAME",
		ArgsUsage: "DIR_OR_FILE...",
		UsageText: `carton-oci pack model.pt --framework-version =2.0.1
carton-oci pack ./model -o m.carton
carton-oci pack hf:org/name@v1 --exclude '*.bin'`,
		Description: packHelp(),
		Flags: s.flags([]cli.Flag{
			text(&file, "output", "write `FILE` (NAME.carton); - is standard output", "o"),
			yes(&force, "force", "replace FILE"),
		}, packFlags(&o), inCategory(forThin,
			each("link", "leave out what `[PATH=]URL` serves: one file, or all of model/", func(text string) error {
				l, err := pack.ParseLink(text)
				o.Links = append(o.Links, l)
				return err
			}),
		), inCategory(whatIsPacked, gitFlag(&git),
			yes(&o.AllowInvalid, "allow-invalid", "pack what is broken all the same")), s.webFlags()),
		Action: s.command(func(c *cli.Context) error {
			if git {
				source, err := s.madeOf(c)
				if err != nil {
					return err
				}
				o.Checkout = source.URL
			}
			return s.runPack(c, o, file, force)
		}),
	}
}

// packed is what `pack --format json` prints.
type packed struct {
	Path      string        `json:"path"`
	ModelHash string        `json:"modelHash"`
	Size      int64         `json:"size"` // of the file, in bytes
	Members   int           `json:"members"`
	Linked    []string      `json:"linked"` // members that LINKS names, and the file does not hold
	Runner    carton.Runner `json:"runner"`
	Filled    []pack.Fact   `json:"filled"`
	Snapshot  string        `json:"snapshot,omitempty"` // the commit of a hub's cache
	LeftOut   []string      `json:"leftOut"`
	Warnings  []string      `json:"warnings"`
}

func (s *session) runPack(c *cli.Context, opts pack.Options, name string, force bool) error {
	paths := c.Args().Slice()
	if len(paths) == 0 {
		return wantArgs(c, "DIR_OR_FILE...")
	}
	if name == stream {
		return s.streamPack(c, paths, opts)
	}
	name, err := packOutput(name, paths, opts)
	if err != nil {
		return err
	}
	if fi, err := os.Lstat(name); err == nil && !force {
		err := fmt.Errorf("pack: %w", &carton.Error{Path: name, Kind: carton.ErrExist, Msg: "exists"})
		if !fi.Mode().IsRegular() {
			return withHint(err, "name another file: -o FILE.carton")
		}
		return withHint(err, "--force replaces it")
	}
	src, err := s.pack(c, paths, opts)
	if err != nil {
		return err
	}
	defer src.Close()
	s.showProgress("pack")
	err = carton.Assemble(c.Context, name, src, carton.AssembleOptions{
		Replace: force, Thin: src.Thin, Progress: s.progress,
	})
	s.stopProgress()
	if err != nil {
		return hintDamaged(src, fmt.Errorf("pack %s: %w", name, err))
	}
	if err := s.printPacked(c, name, src); err != nil {
		return err
	}
	return s.hintOrigin(src)
}

// streamPack packs to standard output.
func (s *session) streamPack(c *cli.Context, paths []string, opts pack.Options) error {
	if err := s.mayStream(c, "force"); err != nil {
		return err
	}
	src, err := s.pack(c, paths, opts)
	if err != nil {
		return err
	}
	defer src.Close()
	s.showProgress("pack")
	err = carton.Stream(c.Context, s.out, src, carton.StreamOptions{Thin: src.Thin, Progress: s.progress})
	s.stopProgress()
	if err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	s.notef("packed, model hash %s", src.Manifest().ModelHash())
	return s.hintOrigin(src)
}

// packOutput names the file to write, which must not be among those that are
// packed.
func packOutput(name string, paths []string, opts pack.Options) (string, error) {
	if name == "" {
		var err error
		if name, err = defaultName(paths[0]); err != nil {
			return "", fmt.Errorf("pack %s: %w", paths[0], err)
		}
		name += location.Ext
	}
	if err := notInside("pack", name, packInputs(paths, opts)); err != nil {
		return "", withHint(err, "name a file elsewhere: -o FILE.carton")
	}
	return name, nil
}

// defaultName is what a carton of what is packed is called.
func defaultName(arg string) (string, error) {
	if loc, err := location.Parse(arg); err == nil && loc.Kind == location.KindHub {
		return path.Base(loc.Repository), nil
	}
	return pack.DefaultName(arg)
}

// packInputs are the files and folders that a pack reads.
func packInputs(paths []string, opts pack.Options) []string {
	return append([]string{opts.Misc, opts.TensorData, opts.InfoFile}, paths...)
}

// notInside refuses an output that is one of the inputs, or lies in one.
func notInside(verb, output string, inputs []string) error {
	for _, in := range inputs {
		if in != "" && place.Inside(output, in) {
			return usagef(verb, "%s would be written over, or into, what is read: %s", quoted(output), quoted(in))
		}
	}
	return nil
}

// pack opens loose files as a carton, and tells what is odd about it.
func (s *session) pack(c *cli.Context, paths []string, opts pack.Options) (*pack.Carton, error) {
	s.showProgress("hash")
	opts.Progress = s.progress
	src, err := s.openFiles(c, paths, opts)
	s.stopProgress()
	s.progress = nil
	if err != nil {
		return nil, s.packError(c, paths, err)
	}
	for _, w := range src.Warnings {
		s.warnf("%s", w)
	}
	s.hints(src.Hints...)
	if src.PMF != nil && src.PMF.Training.Status == "running" {
		s.warnf("the training is still running: what is packed is the model as it is now")
	}
	return src, nil
}

// packError says what could not be packed, in the words of the command line.
func (s *session) packError(c *cli.Context, paths []string, err error) error {
	verb := c.Command.Name + " " + strings.Join(paths, " ")
	var missing *pack.MissingError
	var invalid *pmf.Invalid
	switch {
	case errors.As(err, &missing):
		what := "the files don't say all that carton.toml needs"
		if c.Command.Name == "push" && packAsked(c) == "" {
			what = "it is no carton, and to pack it on the way the files don't say all that carton.toml needs"
		}
		return missingFlags(verb, what, missing)
	case errors.As(err, &invalid):
		for _, v := range invalid.Violations {
			s.sayf(styleBad.paint(s.err, "error: "), "%s", v)
		}
		text := fmt.Sprintf("%s: is not a valid tree of the Plums Model Format: %s", verb,
			count(len(invalid.Violations), "broken rule"))
		return &listedError{text: text, err: err}
	case errors.Is(err, pack.ErrOptions), errors.Is(err, fs.ErrNotExist) && slices.ContainsFunc(paths, isMissing):
		return &usageError{fmt.Errorf("%s: %w", verb, err)}
	}
	return fmt.Errorf("%s: %w", verb, err)
}

func isMissing(name string) bool {
	if loc, err := location.Parse(name); err == nil && loc.Kind == location.KindHub {
		return false
	}
	_, err := os.Stat(name)
	return errors.Is(err, fs.ErrNotExist)
}

// missingFlags asks for flags, all in one error; what are the words for where they
// were looked for.
func missingFlags(verb, what string, e *pack.MissingError) error {
	var flags, hints []string
	for _, f := range e.Fields {
		switch f {
		case pack.FieldRunner:
			names := listOf(pack.Runners, func(r pack.Runner) string { return r.Name })
			flags = append(flags, "--runner")
			hints = append(hints, "--runner is what loads the model: "+strings.Join(names, ", ")+
				", or another; noop is for storage only")
		case pack.FieldFrameworkVersion:
			flags = append(flags, "--framework-version")
			hints = append(hints,
				"--framework-version is which versions of its framework: =2.0.1, >=1.0, <2.0, or * for any")
		}
	}
	for _, opt := range e.Opts {
		flags = append(flags, "--opt "+opt+"=TEXT")
	}
	if len(e.Opts) > 0 {
		hints = append(hints, "--opt KEY=VALUE sets an option that the runner "+e.Runner+" can't do without")
	}
	list := strings.Join(flags[:len(flags)-1], ", ")
	if list != "" {
		list += " and "
	}
	err := error(&usageError{fmt.Errorf("%s: %s: want %s%s", verb, what, list, flags[len(flags)-1])})
	for i := len(hints) - 1; i >= 0; i-- {
		err = withHint(err, "%s", hint.Text(hints[i]))
	}
	return err
}

// printPacked prints what was packed.
func (s *session) printPacked(c *cli.Context, name string, src *pack.Carton) error {
	members, err := src.Members(c.Context)
	if err != nil {
		return err
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	p := packed{
		Path: name, ModelHash: src.Manifest().ModelHash(), Size: info.Size(), Members: len(members),
		Runner:   src.Info.Runner,
		Snapshot: src.Snapshot,
		Linked:   []string{}, Filled: append([]pack.Fact{}, src.Filled...), LeftOut: append([]string{}, src.LeftOut...),
		Warnings: append([]string{}, src.Warnings...),
	}
	for _, m := range members {
		if src.Thin != nil && m.Target == "" && strings.HasPrefix(m.Path, "model/") && len(src.Thin.URLs[m.Hash]) > 0 {
			p.Linked = append(p.Linked, m.Path)
		}
	}
	s.result(p, []string{p.Path}, func() { s.printPack(p) })
	return nil
}

func (s *session) printPack(p packed) {
	rows := [][2]string{{"snapshot", p.Snapshot}}
	for _, f := range p.Filled {
		rows = append(rows, [2]string{"filled in", fmt.Sprintf("%s = %s (%s)", f.Field, f.Value, f.From)})
	}
	if len(p.LeftOut) > 0 {
		rows = append(rows, [2]string{"left out", s.shownLeftOut(p.LeftOut)})
	}
	for _, l := range p.Linked {
		rows = append(rows, [2]string{"linked", l})
	}
	s.fields(append(rows,
		[2]string{"members", fmt.Sprint(p.Members)},
		[2]string{"size", errtext.Size(p.Size)},
		[2]string{"model hash", p.ModelHash},
		[2]string{"path", p.Path},
	)...)
}

// leftOutShown is how many of the files and folders that are left out are named.
const leftOutShown = 4

// shownLeftOut counts what was left out and names the first few, with --debug all.
func (s *session) shownLeftOut(names []string) string {
	shown := names
	if !s.debug && len(names) > leftOutShown {
		shown = names[:leftOutShown]
	}
	text := fmt.Sprintf("%d: %s", len(names), strings.Join(shown, ", "))
	if n := len(names) - len(shown); n > 0 {
		text += fmt.Sprintf(" and %d more (--debug names all)", n)
	}
	return text
}
