package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/pkg/client"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/pack"
	"github.com/carton-oci/carton-oci/pkg/registry"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

func (s *session) pushCommand() *cli.Command {
	var o client.PushOptions
	var p pack.Options
	var w signerWords
	var git bool
	return &cli.Command{
		Name:      "push",
		Usage:     "send a carton to a registry or an image layout",
		ArgsUsage: "SOURCE REF[,TAG...]",
		UsageText: `carton-oci push m.carton ghcr.io/org/m:1
carton-oci push ./model ghcr.io/org/m:1,latest
carton-oci push hf:org/name ghcr.io/org/name:1
carton-oci push m.carton ghcr.io/org/m:1 --image
carton-oci push ghcr.io/org/m:1 registry.example/org/m:1`,
		Description: `What the registry has already is neither sent nor read. An artifact is copied as
it is, so that REF has the digest of SOURCE, unless a flag asks for another
form; its tar layers are read and checked, on their way or where they are
already. The last line printed is the digest; with -q it is the only one.

A folder or model file that is no carton is packed on the way, with no file
between and the same digests; what is missing is asked for.
"carton-oci pack --help" says more. So is a repository of the Hugging Face hub,
hf:ORG/NAME[@REV]: its weights go from the hub to the registry as they are read,
and what the registry has is not read.

Kubernetes mounts a pushed carton as an empty folder, unless its image form is
there too: --image, or "carton-oci image REF" afterwards. --image makes layers
that both forms share; one that is made of raw layers afterwards is as large
again.`,
		Flags: s.flags(sendFlags(&o.NoClobber, &o.DryRun), packFlags(&p), imageFlags(&o),
			inCategory(forForm, append(mappingFlags(&o.Mapping),
				gitFlag(&git),
				forceFlag(&o.Force),
				yes(&o.Mapping.AllowInvalid, "allow-invalid",
					"push although carton.toml, or what it refers to, is wrong"),
			)...), signerFlags(&w, "sign-key"), s.sourceFlags(s.chunkSizeFlag())),
		Action: s.command(func(c *cli.Context) error {
			if git {
				if err := s.annotateGit(c, &o, &p); err != nil {
					return err
				}
			}
			return s.runPush(c, o, p, w)
		}),
	}
}

func (s *session) runPush(c *cli.Context, opts client.PushOptions, p pack.Options, w signerWords) error {
	source, ref := c.Args().Get(0), c.Args().Get(1)
	if err := checkForm(c, &opts); err != nil {
		return err
	}
	to, _, err := location.ParseDestination(ref)
	if err != nil {
		return fmt.Errorf("push: %w", err)
	}
	if err := s.logInAs(c, to); err != nil {
		return err
	}
	if opts.Signer, err = s.signer(c, w); err != nil {
		return err
	}
	p.AllowInvalid = opts.Mapping.AllowInvalid
	loose, err := s.packLoose(c, source, to, p)
	if err == nil {
		err = noteOrigin(&opts.Mapping, loose)
	}
	if err != nil {
		return err
	}
	if !opts.DryRun {
		s.showProgress("push")
	}
	opts.Concurrency, opts.Progress = s.concurrency, s.progress
	opts.Planned = func(r *client.PushResult) {
		for _, w := range r.Warnings {
			if loose == nil || !slices.Contains(loose.Warnings, w) { // said when it was packed
				s.warnf("%s", w)
			}
		}
		s.noteOtherArtifact(c, r)
		s.noteBytesToSend(source, r)
		s.noteImage(&opts, r)
	}
	result, err := s.pushCarton(c.Context, loose, source, ref, opts)
	s.stopProgress()
	if err != nil {
		return hintToGoOn(hintDamaged(loose, err))
	}
	s.result(result, []string{result.Digest.String()}, func() { s.printPush(result) })
	s.noteNoImage(&opts, to, result)
	return nil
}

// hintToGoOn adds to the error of what was interrupted, or whose registry went
// away, that nothing of it was for nothing.
func hintToGoOn(err error) error {
	if code := exitCode(err); code == exitInterrupted || errors.Is(err, registry.ErrGaveUp) {
		return withHint(err, "run it again to go on: what the registry has by then is not sent again")
	}
	return err
}

func (s *session) printPush(r *client.PushResult) {
	if r.DryRun {
		s.printLayers(r)
	} else if r.Image != nil {
		s.printVolume(r.Image.Reference, r.Image.Digest)
	}
	tags := ""
	if len(r.Tags) > 1 {
		tags = strings.Join(r.Tags, ", ")
	}
	rows := [][2]string{{"reference", r.Reference}}
	if r.Image != nil {
		rows = append(rows, [2]string{"", forModels})
	}
	rows = append(rows, [2]string{"tags", tags})
	if r.Source != nil && r.Source.Copied {
		rows = append(rows, [2]string{"copy of", r.Source.Reference})
	}
	if i := r.Image; i != nil {
		rows = append(rows, [2]string{"image", i.Reference},
			[2]string{"", forImages + " (" + errtext.Size(i.Unshared) + " more)"},
			[2]string{"tags", strings.Join(i.Tags, ", ")}, [2]string{"image digest", i.Digest.String()})
	}
	if len(r.Signatures) > 0 {
		s.printSigned(r.Signatures, r.Digest)
	}
	s.fields(append(rows,
		[2]string{"with", withSummary(r.With)},
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
	seen := map[digest.Digest]bool{}
	var parts []string
	for _, status := range []string{"missing", "uploaded", "mounted", "exists"} {
		blobs, bytes := 0, int64(0)
		for _, l := range r.Layers {
			if l.Status == status && !seen[l.Digest] {
				seen[l.Digest] = true
				blobs++
				bytes += l.Size
			}
		}
		if status == "exists" && blobs > 1 {
			status = "exist"
		}
		if blobs > 0 {
			parts = append(parts, fmt.Sprintf("%d %s (%s)", blobs, status, errtext.Size(bytes)))
		}
	}
	text := strings.Join(parts, ", ")
	if r.AlreadyThere {
		return "nothing to do: all of it is there"
	}
	if !r.DryRun {
		text += fmt.Sprintf(" in %.1f s", r.Seconds)
	}
	return text
}
