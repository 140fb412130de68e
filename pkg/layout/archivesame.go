package layout

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/carton-oci/carton-oci/internal/jsonstream"
	"github.com/carton-oci/carton-oci/internal/place"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// same wants the file that exists to be the archive that was laid out. It reads all
// of it, and removes what a killed process may have left beside it.
func (w *ArchiveWriter) same(ctx context.Context) (bool, error) {
	why, err := w.differs(ctx)
	switch {
	case err != nil:
		return false, err
	case why != "":
		return false, mayReplace(w.path, errorf(ErrExist, w.path, "exists, and %s", why))
	}
	place.Tidy(w.path)
	return true, nil
}

// mayReplace adds to the error about a file that exists what can be done.
func mayReplace(path string, err error) error {
	fi, lerr := os.Lstat(path)
	switch {
	case lerr != nil:
		return err
	case fi.Mode()&fs.ModeSymlink != 0:
		return hint.With(err, "name what the symlink points to, or another file")
	case !fi.Mode().IsRegular():
		return hint.With(err, "give another name")
	}
	return hint.With(err, "%s replaces it", hint.Force)
}

// differs says in what the file that exists differs from what was laid out, "" for
// nothing.
func (w *ArchiveWriter) differs(ctx context.Context) (string, error) {
	if why, err := place.Foreign(w.path, false); why != "" || err != nil {
		return why, err
	}
	a, err := OpenArchive(w.path)
	if err != nil {
		return fmt.Sprintf("can't be read as one: %v", err), nil
	}
	index, err := jsonstream.Marshal(a.index, "")
	if err != nil {
		return "", err
	}
	if a.info.Size() != w.plan.Size() || !bytes.Equal(index, w.index) {
		return "is another archive", nil
	}
	for e := range w.plan.Entries() {
		dgst := digest.NewDigestFromEncoded(digest.SHA256, path.Base(e.Path))
		if CheckDigest(dgst) != nil {
			continue
		}
		if off, _, _ := w.plan.Extent(e.Path); a.blobs[dgst] != (extent{off, e.Size}) {
			return "is another archive", nil
		}
		there, err := a.Has(ctx, ocispec.Descriptor{
			MediaType: ocispec.MediaTypeImageManifest, Digest: dgst,
			Size: e.Size,
		}, nil)
		if err != nil {
			return "", err
		}
		if !there {
			return "is damaged: " + string(dgst), nil
		}
	}
	return "", nil
}
