package convert

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/opencontainers/go-digest"

	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// scanWhole is the size in bytes up to which an uncompressed tar layer is read
// whole, and so verified, to learn what is in it. Of larger ones the headers are
// read, through ranges: no content is believed for that, as each member has its
// own hash.
const scanWhole = 16 << 20

// scan lists a tar layer's files and symlinks, once.
func (s *Source) scan(ctx context.Context, i int) (err error) {
	l, desc := &s.layers[i], s.manifest.Layers[i]
	if l.scanned {
		return nil
	}
	var entries []layout.TarHeader
	if l.format == formatTar && desc.Size > scanWhole {
		entries, err = layout.ScanTar(ctx, desc.Size, func(ctx context.Context, off, n int64) (io.ReadCloser, error) {
			return s.fetcher.OpenRange(ctx, desc, off, n)
		})
	} else {
		err = s.visitTar(ctx, i, func(h *layout.TarHeader, _ io.Reader) error {
			entries = append(entries, *h)
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("layer %s: %w", desc.Digest, err)
	}
	for _, h := range entries {
		if h.Path == "." && h.Folder {
			continue
		}
		if err := carton.CheckPath(h.Path); err != nil {
			return err
		}
	}
	entries = slices.DeleteFunc(entries, func(h layout.TarHeader) bool { return h.Folder })
	l.entries, l.scanned = entries, true
	return nil
}

// visitTar reads a tar layer whole and verified, and calls visit for each entry
// with its content. What visit was given is believed when visitTar returns nil.
func (s *Source) visitTar(ctx context.Context, i int, visit func(*layout.TarHeader, io.Reader) error) error {
	tar, err := s.openVerifiedTar(ctx, i)
	if err != nil {
		return err
	}
	defer tar.Close()
	sum := sha256.New()
	t := layout.NewTarReader(io.TeeReader(tar, sum))
	for {
		h, err := t.Next()
		if err == io.EOF { //nolint:errorlint // Next's own
			s.layers[i].diffID = digest.NewDigest(digest.SHA256, sum)
			return nil
		}
		if err != nil {
			return err
		}
		if err := visit(h, t); err != nil {
			return err
		}
	}
}

// readFromTar returns one file of a tar layer, verified by the layer's digest.
func (s *Source) readFromTar(ctx context.Context, i int, path string, limit int64) ([]byte, error) {
	var content []byte
	err := s.visitTar(ctx, i, func(h *layout.TarHeader, r io.Reader) (err error) {
		if h.Path != path || h.Folder || h.Target != "" {
			return nil
		}
		if content != nil {
			return &carton.Error{Path: path, Kind: carton.ErrInsecurePath, Msg: "is in the artifact twice"}
		}
		if h.Size > limit {
			return &carton.Error{
				Path: path, Kind: carton.ErrLimit, Msg: fmt.Sprintf("is %d bytes, want at most %d", h.Size, limit),
			}
		}
		content, err = io.ReadAll(r)
		if content == nil {
			content = []byte{}
		}
		return err
	})
	if err == nil && content == nil {
		err = &layout.Error{Kind: layout.ErrFormat, Msg: "is not in the tar layer that should hold it"}
	}
	return content, err
}

// openTar opens a tar layer's uncompressed bytes for streams.
func (s *Source) openTar(ctx context.Context, layer int, off int64) (io.ReadCloser, int64, error) {
	if s.layers[layer].format == formatTar {
		r, err := s.openBlob(ctx, layer, off, -1)
		return r, off, err
	}
	blob, err := s.openBlob(ctx, layer, 0, -1)
	if err != nil {
		return nil, 0, err
	}
	r, err := s.decompress(ctx, layer, blob)
	return r, 0, err
}

// openVerifiedTar opens a tar layer without compression. Who reads up to io.EOF has
// read what has the layer's digest.
func (s *Source) openVerifiedTar(ctx context.Context, layer int) (io.ReadCloser, error) {
	blob, err := s.openBlob(ctx, layer, 0, -1)
	if err != nil {
		return nil, err
	}
	return s.decompress(ctx, layer, layout.NewVerifier(blob, s.manifest.Layers[layer]))
}

// decompress undoes a layer's compression. What it returns closes blob, too.
func (s *Source) decompress(ctx context.Context, layer int, blob io.ReadCloser) (io.ReadCloser, error) {
	plain, err := layout.Decompress(ctx, s.layers[layer].format.compression(), blob)
	if err != nil {
		return nil, errors.Join(err, blob.Close())
	}
	return iox.Over{ReadCloser: plain, Under: blob}, nil
}
