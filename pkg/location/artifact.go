package location

import (
	"os"
	"path/filepath"

	"github.com/carton-oci/carton-oci/pkg/hint"
)

// LayoutFolder is the error of a path that is the folder of an image layout, and no
// carton; nil for every other location.
func (l Location) LayoutFolder() error {
	if l.Kind != KindPath {
		return nil
	}
	for _, name := range []string{"oci-layout", "index.json"} {
		if !isFile(filepath.Join(l.Path, name)) {
			return nil
		}
	}
	return hint.With(Errorf(l.Path, "is the folder of an image layout, and no carton"),
		"what is in it is named oci:%s:TAG", filepath.Clean(l.Path))
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// WantArtifact is the error for a location that is no artifact, where one is wanted.
func (l Location) WantArtifact() error {
	if err := l.LayoutFolder(); err != nil {
		return err
	}
	err := Errorf(l.Redacted(), "got %s, want an artifact in a registry, an image layout or an archive", l.what())
	if l.Kind == KindHub {
		return hint.With(err, "%s makes an artifact of its files", hint.Push)
	}
	return err
}

// WantPlace is the error for a location that nothing can be pushed to.
func (l Location) WantPlace() error {
	if err := l.LayoutFolder(); err != nil {
		return err
	}
	err := Errorf(l.Redacted(), "got %s, want a place in a registry or an image layout", l.what())
	return hint.With(err, "write host/repository:TAG, without https://, oci:DIR:TAG, or FILE%s:TAG", ArchiveExt)
}
