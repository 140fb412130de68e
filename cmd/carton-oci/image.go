package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/pkg/client"
	"github.com/carton-oci/carton-oci/pkg/location"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

func (s *session) imageCommand() *cli.Command {
	var o client.ImageOptions
	return &cli.Command{
		Name:      "image",
		Usage:     "make the form of an artifact that containerd mounts",
		ArgsUsage: "REF",
		UsageText: "carton-oci image ghcr.io/org/m:1",
		Description: `REF-image is an OCI image that unpacks to the carton REF: what push --image
adds. Where REF has tar layers (push --layers tar) they are shared: they come
from the registry once, to be checked against MANIFEST, and nothing goes back
but manifests. Else every file comes once and goes back in a tar layer. Either
way it goes through memory, never to disk. The last line printed is the image's
digest; with -q it is the only one.`,
		Flags: s.flags(slices.Concat(imageFormFlags(&o.Tag, &o.Subject), sendFlags(&o.NoClobber, &o.DryRun)),
			s.registryFlags(s.concurrencyFlag(), s.chunkSizeFlag())),
		Action: s.command(func(c *cli.Context) error { return s.runImage(c, o) }),
	}
}

func (s *session) runImage(c *cli.Context, o client.ImageOptions) error {
	ref := c.Args().Get(0)
	_, err := s.locate(c, ref)
	if err != nil {
		return err
	}
	if !o.DryRun {
		s.showProgress("image")
	}
	o.Concurrency, o.Progress = s.concurrency, s.progress
	result, err := s.client.Image(c.Context, ref, o)
	s.stopProgress()
	if err != nil {
		return hintToGoOn(err)
	}
	s.printImage(result)
	return nil
}

func (s *session) printImage(r *client.ImageResult) {
	var bare []string
	dgst := r.Digest.String()
	if dgst != "" { // of a dry run it is
		bare = []string{dgst}
	}
	s.result(r, bare, func() {
		if !r.DryRun {
			s.printVolume(r.Reference, r.Digest)
		}
		s.fields(
			[2]string{"image", r.Reference},
			[2]string{"", forImages},
			[2]string{"artifact", r.Artifact.Reference},
			[2]string{"layers", imageSummary(r)},
			[2]string{"model hash", r.ModelHash},
			[2]string{"digest", cmp.Or(dgst, "not known before the layers were read")},
		)
	})
}

// imageSummary says what the image form is made of.
func imageSummary(r *client.ImageResult) string {
	text := fmt.Sprintf("%d (%s)", r.Layers, errtext.Size(r.Size))
	switch {
	case r.Shared:
		text += ", shared with the artifact"
	case r.DryRun:
		text += ", to be sent"
	default:
		text += fmt.Sprintf(", %s sent", errtext.Size(r.BytesUploaded))
	}
	if !r.DryRun {
		text += fmt.Sprintf(" in %.1f s", r.Seconds)
	}
	return text
}

// printVolume prints what a pod needs to mount an image form in a registry.
func (s *session) printVolume(reference string, dgst digest.Digest) {
	loc, err := location.Parse(reference)
	if err != nil || loc.Kind != location.KindRegistry {
		return
	}
	loc.Tag, loc.Digest = "", dgst
	for _, line := range []string{
		"volumes:             # of the pod",
		"- name: model",
		"  image:",
		"    reference: " + loc.String(),
		"volumeMounts:        # of the container",
		"- name: model",
		"  mountPath: /model",
		"  subPath: model",
		"",
	} {
		s.linef("%s", line)
	}
}

// What the two forms are for, where both were pushed.
const (
	forModels = "for carton-oci and other tools that know models"
	forImages = "for Kubernetes, and whatever else mounts images"
)
