package main

import (
	"slices"

	"github.com/opencontainers/go-digest"
	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/pkg/client"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/location"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

// imageFlags are the flags of push about who else is to read the artifact.
func imageFlags(o *client.PushOptions) []cli.Flag {
	m := &o.Mapping
	return inCategory("other readers", slices.Concat([]cli.Flag{
		yes(&m.Image, "image", "push the form that containerd mounts as well, as REF-image"),
		yes(&o.LeaveImage, "no-image", "leave a REF-image that is there as it is"),
	}, imageFormFlags(&o.ImageTag, &m.ImageSubject), []cli.Flag{
		yes(&m.Readme, "readme", "add README and LICENSE where the page of a registry, such as Harbor's, looks for them"),
		choice(&m.Compat, "compat", "push `FORM` for a registry that takes no artifacts: image-config, image",
			convert.CompatImageConfig, convert.CompatImage),
	})...)
}

// sayWhatItCosts tells what an image form of raw layers stores twice.
func (s *session) sayWhatItCosts(o *client.PushOptions, r *client.PushResult) {
	if r.Image == nil {
		return
	}
	if r.Source != nil && r.Source.Copied && !r.Image.Shared {
		s.notef("the artifact shares no layers with the image form, which is %s more", errtext.Size(r.Image.Unshared))
	}
	if o.Mapping.Layers == convert.FormRaw {
		s.notef("--layers raw shares nothing with the image form, which is %s more", errtext.Size(r.Image.Unshared))
	}
}

// sayWhatStaysBehind names the tags where somebody may look for this model's
// image form, and finds another's.
func (s *session) sayWhatStaysBehind(r *client.PushResult) {
	if r.Image == nil {
		return
	}
	for _, tag := range r.Image.Left {
		s.notef("%s stays the image form of another model", tag)
	}
}

// sayWhoSeesNothing tells what nobody else will: containerd mounts a model
// artifact without an error, and empty. It is for a person who has just brought
// something new to a registry; what scripts are to know of it is in the help.
func (s *session) sayWhoSeesNothing(o *client.PushOptions, to location.Location, r *client.PushResult) {
	if columns, _ := terminalSize(s.err); columns == 0 || r.BytesUploaded == 0 {
		return
	}
	if !o.Mapping.Image && !o.LeaveImage && o.Mapping.Compat != convert.CompatImage && to.Kind == location.KindRegistry && to.Tag != "" && !o.DryRun && !isImage(r) {
		price := "which sends, and stores, " + errtext.Size(r.Bytes()) + " more"
		if o.Mapping.Layers == convert.FormTar {
			price = "which shares its layers"
		}
		s.notef("containerd mounts this as an empty folder; for Kubernetes: carton-oci image %s, %s", hint.Quote(r.Reference), price)
	}
}

// isImage reports whether an image form was copied.
func isImage(r *client.PushResult) bool {
	return r.Source != nil && r.Source.Copied && r.ArtifactType == ""
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
