package main

import (
	"github.com/opencontainers/go-digest"
	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/pkg/client"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/location"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

// imageFlags are the flags of push about who else is to read the artifact.
func imageFlags() []cli.Flag {
	return inCategory("other readers",
		&cli.BoolFlag{Name: "image", Usage: "push the form that containerd mounts as well, as REF-image"},
		&cli.BoolFlag{Name: "no-image", Usage: "leave a REF-image that is there as it is"},
		&cli.StringFlag{Name: "image-tag", Usage: "tag the image form with `NAME`"},
		&cli.BoolFlag{Name: "image-subject", Usage: "make the image form refer to the artifact, which then lists it"},
		&cli.BoolFlag{Name: "readme", Usage: "add README and LICENSE where the page of a registry, such as Harbor's, looks for them"},
		&cli.StringFlag{Name: "compat", Usage: "push `FORM` for a registry that takes no artifacts: image-config, image"},
	)
}

// setImage reads imageFlags into the options of a push.
func setImage(c *cli.Context, o *client.PushOptions) error {
	if err := notBoth(c, "no-image", "image"); err != nil {
		return err
	}
	if err := onlyWith(c, "image", "image-tag", "image-subject"); err != nil {
		return err
	}
	o.Mapping.Image, o.LeaveImage, o.ImageTag = c.Bool("image"), c.Bool("no-image"), c.String("image-tag")
	o.Mapping.ImageSubject, o.Mapping.Readme = c.Bool("image-subject"), c.Bool("readme")
	if !c.IsSet("compat") {
		return nil
	}
	form, err := oneOf(c, "compat", string(convert.CompatImageConfig), string(convert.CompatImage))
	o.Mapping.Compat = convert.Compat(form)
	if err != nil || o.Mapping.Compat != convert.CompatImage {
		return err
	}
	for _, name := range []string{"image", "readme"} {
		if c.Bool(name) {
			return usagef(c.Command.Name, "--compat image pushes the image form alone: it goes without --%s", name)
		}
	}
	return nil
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
