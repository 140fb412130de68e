package main

import (
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/client"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/location"
)

// formFlags are the flags that ask for a form of the artifact.
var formFlags = []string{"layers", "bundle-below", "media-types", "compress", "annotation", "compat", "readme", "git"}

// noteOtherArtifact tells where the push of an artifact makes another one.
func (s *session) noteOtherArtifact(c *cli.Context, r *client.PushResult) {
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

// noteBytesToSend tells where the bytes to send are not as many as the file's, by
// a twentieth or more: members that are compressed in it travel as they are, and
// so do those that only LINKS names.
func (s *session) noteBytesToSend(source string, r *client.PushResult) {
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

// noteImage tells what an image form of raw layers stores twice, and names the tags
// where somebody may look for this model's image form, and finds another's.
func (s *session) noteImage(o *client.PushOptions, r *client.PushResult) {
	if r.Image == nil {
		return
	}
	more := errtext.Size(r.Image.Unshared)
	if r.Source != nil && r.Source.Copied && !r.Image.Shared {
		s.notef("the artifact shares no layers with the image form, which is %s more", more)
	}
	if o.Mapping.Layers == convert.FormRaw {
		s.notef("--layers raw shares nothing with the image form, which is %s more", more)
	}
	for _, tag := range r.Image.Left {
		s.notef("%s stays the image form of another model", tag)
	}
}

// noteNoImage tells what nobody else will: containerd mounts a model
// artifact without an error, and empty. It is for a person who has just brought
// something new to a registry; what scripts are to know of it is in the help.
func (s *session) noteNoImage(o *client.PushOptions, to location.Location, r *client.PushResult) {
	columns, _ := terminalSize(s.err)
	inRegistry := to.Kind == location.KindRegistry && to.Tag != "" && r.BytesUploaded > 0
	said := o.Mapping.Image || o.LeaveImage || o.Mapping.Compat == convert.CompatImage
	copied := r.Source != nil && r.Source.Copied && r.ArtifactType == "" // an image form
	if columns == 0 || !inRegistry || said || copied {
		return
	}
	price := "which sends, and stores, " + errtext.Size(r.Bytes()) + " more"
	if o.Mapping.Layers == convert.FormTar {
		price = "which shares its layers"
	}
	s.notef("containerd mounts this as an empty folder; for Kubernetes: carton-oci image %s, %s",
		hint.Quote(r.Reference), price)
}
