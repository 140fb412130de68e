package convert

import (
	"strings"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// KServe mounts the folder models of an image, whatever the image; a carton's files
// are in model. So the first tar of an image form has one entry that is no member,
// a symlink from the one to the other: runtimes resolve the path inside the image.
// A carton that has anything called models keeps it, and one without files in model
// needs none.

// modelsLink is that symlink.
var modelsLink = layout.TarEntry{Path: carton.ModelsName, Target: carton.ModelsTarget}

// needsModelsLink reports whether the image form of a carton with these members has the
// symlink.
func needsModelsLink(m *carton.Manifest) bool {
	found := false
	for _, e := range m.Entries() {
		if e.Path == modelsLink.Path || strings.HasPrefix(e.Path, modelsLink.Path+"/") {
			return false
		}
		found = found || strings.HasPrefix(e.Path, modelFolder)
	}
	return found
}

// hasModelsLink reports whether a layer of the artifact has the symlink: the first of an
// image form.
func (s *Source) hasModelsLink(layer int) bool {
	return layer == 0 && IsImage(s.imageManifest) && needsModelsLink(s.carton)
}
