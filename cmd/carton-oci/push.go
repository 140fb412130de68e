package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/pkg/client"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/registry"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

func pushCommand(out *printer) *cli.Command {
	return &cli.Command{
		Name:      "push",
		Usage:     "send a carton to a registry or an image layout",
		ArgsUsage: "SOURCE REF[,TAG...]",
		UsageText: `carton-oci push m.carton ghcr.io/org/m:1
carton-oci push ./model ghcr.io/org/m:1,latest --runner noop
carton-oci push m.carton ghcr.io/org/m:1 --image --layers tar
carton-oci push ghcr.io/org/m:1 registry.example/org/m:1`,
		Description: `What the registry has already is neither sent nor read. An artifact is copied as
it is, so that REF has the digest of SOURCE, unless a flag asks for another
form; its tar layers are read and checked, on their way or where they are
already. The last line printed is the digest; with -q it is the only one.

A folder or model file that is no carton is packed on the way, with no file
between and the same digests; --runner and what else is missing is asked for.
"carton-oci pack --help" says more.

Kubernetes mounts a pushed carton as an empty folder, unless its image form is
there too: --image, or "carton-oci image REF" afterwards. Without --layers tar
that form shares nothing, and doubles what is stored.`,
		Flags: flags([]cli.Flag{
			&cli.StringFlag{Name: "layers", Usage: "`FORM` of layers: raw or tar; with --image tar", Value: string(convert.FormRaw)},
			&cli.StringFlag{Name: "bundle-below", Usage: "bundle files that are no weights and smaller than `SIZE`"},
			&cli.StringFlag{Name: "media-types", Usage: "`FAMILY` of media types: cnai, cncf or cnai-draft", DefaultText: "$" + mediaTypesVariable + ", else cnai"},
			&cli.StringFlag{Name: "compress", Usage: "`METHOD` for bundles: none, zstd or gzip", Value: string(convert.CompressNone)},
			&cli.StringSliceFlag{Name: "annotation", Usage: "annotate the image manifest with `KEY=VALUE` (may be repeated)"},
			&cli.BoolFlag{Name: "no-clobber", Usage: "refuse to move a tag that points to something else"},
			&cli.BoolFlag{Name: "dry-run", Usage: "say what would be sent, and send nothing"},
			&cli.BoolFlag{Name: "allow-invalid", Usage: "push although carton.toml, or what it refers to, is wrong"},
		}, imageFlags(), sourceFlags(chunkSizeFlag()), packFlags()),
		Action: command(out, runPush),
	}
}

func runPush(c *cli.Context, s *session) error {
	if err := wantArgs(c, "SOURCE", "REF[,TAG...]"); err != nil {
		return err
	}
	source, ref := c.Args().Get(0), c.Args().Get(1)
	mapping, err := mappingOf(c)
	if err != nil {
		return err
	}
	to, _, err := location.ParseDestination(ref)
	if err != nil {
		return fmt.Errorf("push: %w", err)
	}
	if err := s.logInAs(c, to); err != nil {
		return err
	}
	loose, err := s.packLoose(c, source, to)
	if err != nil {
		return err
	}
	if !c.Bool("dry-run") {
		s.showProgress("push")
	}
	opts := client.PushOptions{
		Mapping: mapping, NoClobber: c.Bool("no-clobber"), DryRun: c.Bool("dry-run"),
		Concurrency: s.concurrency, Progress: s.progress,
	}
	if err := setImage(c, &opts); err != nil {
		return err
	}
	opts.Planned = func(r *client.PushResult) {
		for _, w := range r.Warnings {
			if loose == nil || !slices.Contains(loose.Warnings, w) { // said when it was packed
				s.warnf("%s", w)
			}
		}
		s.sayWhatIsMade(c, r)
		s.sayWhatTravels(source, r)
		s.sayWhatItCosts(&opts, r)
		s.sayWhatStaysBehind(r)
	}
	result, err := s.pushCarton(c.Context, loose, source, ref, opts)
	s.stopProgress()
	if err != nil {
		return adviseToGoOn(err)
	}
	s.printPush(result)
	s.sayWhoSeesNothing(&opts, to, result)
	return nil
}

// adviseToGoOn adds to the error of what was interrupted, or whose registry went
// away, that nothing of it was for nothing.
func adviseToGoOn(err error) error {
	if code := exitCode(err); code == exitInterrupted || errors.Is(err, registry.ErrGaveUp) {
		return withHint(err, "run it again to go on: what the registry has by then is not sent again")
	}
	return err
}

// mappingOf reads the flags that say how a carton becomes an artifact.
func mappingOf(c *cli.Context) (convert.Options, error) {
	var o convert.Options
	layers, err := oneOf(c, "layers", string(convert.FormRaw), string(convert.FormTar))
	if err != nil {
		return o, err
	}
	compress, err := oneOf(c, "compress", string(convert.CompressNone), string(convert.CompressZstd), string(convert.CompressGzip))
	if err != nil {
		return o, err
	}
	// What nobody asked for stays open: an artifact is copied in whatever form it is.
	if c.IsSet("layers") {
		o.Layers = convert.Form(layers)
	}
	if err := setMediaTypes(c, &o); err != nil {
		return o, err
	}
	if c.IsSet("compress") {
		o.Compress = convert.Compression(compress)
	}
	if c.IsSet("bundle-below") {
		if o.BundleBelow, err = parseSize(c.String("bundle-below")); err != nil {
			return o, usagef("push", "--bundle-below: %v", err)
		}
		if o.BundleBelow == 0 {
			o.BundleBelow = -1 // bundle nothing that needs no bundle; 0 would leave the choice
		}
	}
	for _, text := range c.StringSlice("annotation") {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return o, usagef("push", "--annotation: got %s, want KEY=VALUE", quoted(text))
		}
		if o.Annotations == nil {
			o.Annotations = map[string]string{}
		}
		o.Annotations[key] = value
	}
	o.AllowInvalid = c.Bool("allow-invalid")
	o.Created, err = created()
	return o, err
}

// mediaTypesVariable names the environment variable with the family of media types
// that is written where --media-types asks for none.
const mediaTypesVariable = "CARTON_OCI_MEDIA_TYPES"

// setMediaTypes reads the flag and, where it is not given, the variable.
func setMediaTypes(c *cli.Context, o *convert.Options) error {
	families := []string{string(convert.FamilyCNAI), string(convert.FamilyCNCF), string(convert.FamilyDraft)}
	if c.IsSet("media-types") {
		types, err := oneOf(c, "media-types", families...)
		o.MediaTypes = convert.Family(types)
		return err
	}
	text := os.Getenv(mediaTypesVariable)
	if text != "" && !slices.Contains(families, text) {
		return usagef(c.Command.Name, "%s: got %s, want %s", mediaTypesVariable, quoted(text), strings.Join(families, " or "))
	}
	o.DefaultMediaTypes = convert.Family(text)
	return nil
}

// formFlags are the flags that ask for a form of the artifact.
var formFlags = []string{"layers", "bundle-below", "media-types", "compress", "annotation", "compat", "readme"}

// sayWhatIsMade tells where the push of an artifact makes another one.
func (s *session) sayWhatIsMade(c *cli.Context, r *client.PushResult) {
	if r.Source == nil || r.Source.Digest == r.Digest {
		return
	}
	var asked []string
	for _, name := range formFlags {
		if c.IsSet(name) {
			asked = append(asked, "--"+name)
		}
	}
	s.notef("%s makes another artifact of %s: its digest is %s, that one's is %s",
		strings.Join(asked, ", "), r.Source.Reference, r.Digest, r.Source.Digest)
}

// sayWhatTravels tells where the bytes to send are not as many as the file's, by
// a twentieth or more: members that are compressed in it travel as they are, and
// so do those that only LINKS names.
func (s *session) sayWhatTravels(source string, r *client.PushResult) {
	info, err := os.Stat(source)
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	file, send := info.Size(), r.Bytes()
	if r.Image != nil {
		send += r.Image.Unshared
	}
	if difference := max(file, send) - min(file, send); difference > file/20 {
		s.notef("%s carton, at most %s to send", errtext.Size(file), errtext.Size(send))
	}
}

func (s *session) printPush(r *client.PushResult) {
	switch {
	case s.json:
		s.object(r)
		return
	case s.quiet:
		s.linef("%s", r.Digest)
		return
	}
	if r.DryRun {
		s.printLayers(r)
	} else if r.Image != nil {
		s.printVolume(r.Image.Reference, r.Image.Digest)
	}
	tags := ""
	if len(r.Tags) > 1 {
		tags = strings.Join(r.Tags, ", ")
	}
	rows := [][2]string{{"reference", r.Reference}, {"tags", tags}}
	if r.Source != nil && r.Source.Copied {
		rows = append(rows, [2]string{"copy of", r.Source.Reference})
	}
	if i := r.Image; i != nil {
		rows = append(rows, [2]string{"", forModels}, [2]string{"image", i.Reference}, [2]string{"tags", strings.Join(i.Tags, ", ")},
			[2]string{"", forImages + " (" + errtext.Size(i.Unshared) + " more)"}, [2]string{"image digest", i.Digest.String()})
	}
	s.fields(append(rows,
		[2]string{"layers", layerSummary(r)},
		[2]string{"model hash", r.ModelHash},
		[2]string{"digest", r.Digest.String()},
	)...)
}

func (s *session) printLayers(r *client.PushResult) {
	rows := [][]string{{"LAYER", "SIZE", "STATUS"}}
	for _, l := range r.Layers {
		name := "no member"
		switch {
		case len(l.Paths) == 1:
			name = l.Paths[0]
		case len(l.Paths) > 1:
			name = fmt.Sprintf("%s from %s", count(len(l.Paths), "member"), l.Paths[0])
		}
		rows = append(rows, []string{name, errtext.Size(l.Size), l.Status})
	}
	s.table(rows)
	s.linef("")
}

// layerSummary says how many layers there are, what became of them, and how
// long that took.
func layerSummary(r *client.PushResult) string {
	blobs := map[string]int{}
	bytes := map[string]int64{}
	seen := map[digest.Digest]bool{}
	for _, l := range r.Layers {
		if !seen[l.Digest] {
			seen[l.Digest] = true
			blobs[l.Status]++
			bytes[l.Status] += l.Size
		}
	}
	var parts []string
	for _, status := range []string{"missing", "uploaded", "mounted", "exists"} {
		if n := blobs[status]; n > 0 {
			if status == "exists" && n > 1 {
				status, bytes["exist"] = "exist", bytes[status]
			}
			parts = append(parts, fmt.Sprintf("%d %s (%s)", n, status, errtext.Size(bytes[status])))
		}
	}
	text := strings.Join(parts, ", ")
	if !r.DryRun {
		text += fmt.Sprintf(" in %.1f s", r.Seconds)
	}
	return text
}
