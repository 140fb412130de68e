package registrytest

import (
	"encoding/json"
	"net/http"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// refusesManifest answers as registries do that know images and nothing newer,
// where ImagesOnly or ImageLayersOnly says so. [ECR before 2024, Artifactory's
// Docker repositories]
func (r *Registry) refusesManifest(w http.ResponseWriter, content []byte) bool {
	var m ocispec.Manifest
	q := r.conf.Quirks
	if !q.ImagesOnly && !q.ImageLayersOnly || json.Unmarshal(content, &m) != nil {
		return false
	}
	if q.ImageLayersOnly {
		for _, l := range m.Layers {
			if !strings.HasPrefix(l.MediaType, "application/vnd.oci.image.layer.v1.tar") {
				fail(w, http.StatusBadRequest, "MANIFEST_INVALID", "manifest invalid: unknown layer media type "+l.MediaType)
				return true
			}
		}
	}
	switch {
	case !q.ImagesOnly:
		return false
	case m.ArtifactType != "":
		fail(w, http.StatusMethodNotAllowed, "UNSUPPORTED",
			"Invalid parameter at 'ImageManifest' failed to satisfy constraint: 'Invalid JSON syntax'")
	case m.Config.MediaType != ocispec.MediaTypeImageConfig && !strings.HasPrefix(m.Config.MediaType, "application/vnd.docker."):
		fail(w, http.StatusBadRequest, "MANIFEST_INVALID", "manifest invalid: unknown config media type")
	default:
		return false
	}
	return true
}
