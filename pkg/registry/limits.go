package registry

import (
	"context"
	"fmt"
	"net/http"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// CheckArtifact refuses an artifact that the registry is known not to take: a
// layer that is too large, too many layers, an image manifest over
// layout.MaxManifestBytes. It sends nothing. Its one error wraps
// [ErrTooLarge] and names the first layer that is at fault.
func (r *Repository) CheckArtifact(_ context.Context, a *layout.Artifact) error {
	b := &r.host.behaviour
	if len(a.Manifest) > layout.MaxManifestBytes {
		return hint.With(limitError("image manifest", "got %d bytes, want at most %d", len(a.Manifest), layout.MaxManifestBytes),
			"larger bundles make fewer layers: --bundle-below SIZE")
	}
	if n := len(a.Layers); b.layers > 0 && n > b.layers {
		return hint.With(limitError("image manifest", "got %d layers, want at most %d (%s)", n, b.layers, b.name),
			"larger bundles make fewer layers: --bundle-below SIZE")
	}
	var first *layout.Layer
	more := 0
	for i := range a.Layers {
		switch l := &a.Layers[i]; {
		case b.layer == 0 || l.Size <= b.layer:
		case first == nil:
			first = l
		default:
			more++
		}
	}
	if first == nil {
		return nil
	}
	name := first.Name
	if name == "" {
		name = first.Digest.String()
	}
	var err error = limitError(name, "got %d bytes, want at most %d (%s) in a layer (%s)", first.Size, b.layer, errtext.Size(b.layer), b.name)
	if more > 0 {
		err = hint.With(err, "%d more layers are too large", more)
	}
	return hint.With(err, "split the file, as weights can be, or use another registry")
}

func limitError(object, format string, args ...any) *layout.Error {
	return &layout.Error{Object: object, Kind: ErrTooLarge, Msg: fmt.Sprintf(format, args...)}
}

// explain adds to the failure of an upload what the registry is known for.
func (h *endpoint) explain(f *fault, size int64) error {
	b := &h.behaviour
	switch {
	case f.source || f.status >= 400 && f.status < 500 && f.status != http.StatusRequestEntityTooLarge:
		return f.err
	case b.upload > 0 && f.took >= b.upload-b.upload/leastMeasure:
		return hint.With(f.err, "%s ends an upload after %s; this one had been under way for %s", hint.Text(b.name), b.upload, roughly(f.took.Seconds()))
	case b.name == "" && size > 32*gib:
		// github.com/goharbor/harbor/issues/19573 (2023-11): mended in 2.9.2 and 2.10.0.
		return hint.With(f.err, "Harbor before 2.9.2 takes no layer over 32 GiB, and this one has %s", hint.Text(errtext.Size(size)))
	}
	return f.err
}
