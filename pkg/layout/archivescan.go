package layout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/internal/sha256hex"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// blobPrefix is what the name of a blob begins with.
const blobPrefix = ocispec.ImageBlobsDir + "/" + string(digest.SHA256) + "/"

// dockerManifest is the file that makes a tar an archive of Docker's own format.
// docker save writes it beside an image layout, too, as it does "repositories".
const dockerManifest = "manifest.json"

// packed are the first bytes of what an archive may have been packed with.
var packed = []struct{ magic, name, unpack string }{
	{"\x1f\x8b", "gzip", "gunzip"},
	{"\x28\xb5\x2f\xfd", "zstd", "unzstd"},
	{"BZh", "bzip2", "bunzip2"},
	{"\xfd7zXZ\x00", "xz", "unxz"},
}

// refuseCompressed says of a tar that is compressed what it is: a range of such a
// one costs everything before it.
func refuseCompressed(path string, f io.ReaderAt) error {
	head := make([]byte, 8)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read %s: %w", path, err)
	}
	for _, p := range packed {
		if bytes.HasPrefix(head[:n], []byte(p.magic)) {
			return hint.With(errorf(ErrFormat, path, "is compressed with %s, want a tar as it is", p.name),
				"%s -k %s unpacks it; the layers inside may be compressed", hint.Text(p.unpack), path)
		}
	}
	return nil
}

// scan reads the headers of the tar. It notes where blobs lie, and returns where the
// two files beside them do.
func (a *Archive) scan(f *os.File) (map[string]extent, error) {
	headers, err := ScanTar(context.Background(), a.info.Size(),
		func(_ context.Context, off, n int64) (io.ReadCloser, error) {
			return io.NopCloser(&iox.Exactly{R: io.NewSectionReader(f, off, n), N: n}), nil
		})
	if err != nil {
		return nil, a.noTar(err)
	}
	files, strange := map[string]extent{}, ""
	seen := map[string]bool{}
	for _, h := range headers {
		if h.Folder {
			continue
		}
		if seen[h.Path] {
			return nil, errorf(ErrFormat, a.path, "holds %s twice", quote(h.Path))
		}
		seen[h.Path] = true
		e := extent{h.Offset, h.Size}
		digits, isBlob := strings.CutPrefix(h.Path, blobPrefix)
		switch {
		case h.Target != "":
			return nil, errorf(ErrFormat, a.path, "holds a symlink, %s, want files", quote(h.Path))
		case isBlob && sha256hex.Is(digits):
			a.blobs[digest.NewDigestFromEncoded(digest.SHA256, digits)] = e
		// of another algorithm: nothing that is read names it
		case !isBlob && path.Dir(path.Dir(h.Path)) == ocispec.ImageBlobsDir:
		case h.Path == dockerManifest, h.Path == "repositories":
		case h.Path == ocispec.ImageLayoutFile, h.Path == ocispec.ImageIndexFile:
			files[h.Path] = e
		case strange == "":
			strange = h.Path
		}
	}
	_, isLayout := files[ocispec.ImageLayoutFile]
	switch {
	case !isLayout && seen[dockerManifest]:
		return nil, hint.With(errorf(ErrFormat, a.path, "is a docker-archive, which holds no image layout"),
			"skopeo copy docker-archive:%s oci-archive:FILE makes one that does", a.path)
	case isLayout && strange != "":
		return nil, errorf(ErrFormat, a.path, "holds %s, which no image layout does", quote(strange))
	}
	return files, nil
}

// noTar says which file is no tar, or no whole one.
func (a *Archive) noTar(err error) error {
	if !errtext.IsContent(err) {
		return fmt.Errorf("read %s: %w", a.path, err)
	}
	return &Error{
		Object: a.path, Kind: ErrFormat, Msg: "is no archive of an image layout, or not a whole one",
		Err: err,
	}
}
