package convert

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"sync"

	"github.com/opencontainers/go-digest"

	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// Who publishes a tar layer of an artifact, in an image or in a copy, has read
// all of it: other programs unpack it without asking MANIFEST. What must be right
// is the layer's digest, the content of every member, and what the tar has
// besides: that of an artifact of the mapping must be the mapping's to the byte,
// that of any other holds files, folders and symlinks that MANIFEST lists, each
// once, and nothing else.

// verifyTarBlob reads a tar layer from the bytes of its blob, verifies it, and returns
// its digest without compression. Nothing is kept.
func (s *Source) verifyTarBlob(ctx context.Context, i int, blob io.ReadCloser) (digest.Digest, error) {
	desc := s.manifest.Layers[i]
	checked := layout.NewVerifier(blob, desc)
	plain, err := layout.Decompress(ctx, s.layers[i].format.compression(), checked)
	if err != nil {
		return "", err
	}
	defer plain.Close()
	sum := sha256.New()
	if s.layers[i].format == formatTar { // its digest is desc's, which is checked already
		err = s.verifyTar(ctx, i, plain)
		return desc.Digest, err
	}
	if err := s.verifyTar(ctx, i, io.TeeReader(plain, sum)); err != nil {
		return "", err
	}
	return digest.NewDigest(digest.SHA256, sum), nil
}

// verifyTar reads an uncompressed tar up to io.EOF.
func (s *Source) verifyTar(ctx context.Context, i int, r io.Reader) error {
	t := s.layers[i].tar
	if t == nil {
		return s.verifyForeignTar(i, r)
	}
	at := int64(0)
	for e := range t.plan.Entries() {
		off, size, _ := t.plan.Extent(e.Path)
		if err := t.check(ctx, r, at, off); err != nil {
			return err
		}
		at = off + size
		if e.Target != "" {
			continue
		}
		if err := s.verifyContent(e.Path, io.LimitReader(r, size), size); err != nil {
			return err
		}
	}
	return t.checkEnd(ctx, r, at)
}

// verifyForeignTar compares a tar of any writer with MANIFEST.
func (s *Source) verifyForeignTar(i int, r io.Reader) error {
	at := map[int64]string{} // by offset: what was found here before
	for _, h := range s.layers[i].entries {
		at[h.Offset] = h.Path + "\x00" + h.Target
	}
	t := layout.NewTarReader(r)
	for {
		h, err := t.Next()
		switch {
		case err == io.EOF && len(at) == 0: //nolint:errorlint // Next's own
			return nil
		case err == io.EOF: //nolint:errorlint // Next's own
			return errTarChanged(s.manifest.Layers[i].Digest.String())
		case err != nil:
			return err
		case h.Folder && h.Path == ".":
			continue
		case h.Folder:
			if err := carton.CheckPath(h.Path); err != nil {
				return err
			}
			continue
		case at[h.Offset] != h.Path+"\x00"+h.Target:
			return errTarChanged(h.Path)
		}
		delete(at, h.Offset)
		if h.Target != "" {
			continue
		}
		if err := s.verifyContent(h.Path, t, h.Size); err != nil {
			return err
		}
	}
}

// errTarChanged: a list of a large tar comes through ranges that nobody verified.
func errTarChanged(object string) error {
	return &layout.Error{
		Object: object, Kind: layout.ErrDigest,
		Msg: "the tar layer is not what it was when it was listed",
	}
}

// verifyContent reads a member's content to its end.
func (s *Source) verifyContent(path string, r io.Reader, size int64) error {
	hash := s.carton.ModelHash()
	if path != carton.ManifestName {
		e, _ := s.carton.Lookup(path)
		hash = e.Hash
	}
	_, err := io.Copy(io.Discard, carton.NewVerifier(io.NopCloser(r), path, hash, size))
	return err
}

// checkedTar is what is known of a tar layer that may be published.
type checkedTar struct {
	mu     sync.Mutex
	diffID digest.Digest // "" until it was read and nothing was wrong
}

func (c *checkedTar) known() digest.Digest {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.diffID
}

// vouch reads a tar layer, unless that was done, and says what is wrong with it.
// It reads it from near where that is not nil.
func (s *Source) vouch(ctx context.Context, i int, near layout.Fetcher, moved func(off int64)) error {
	if err := s.scanTars(ctx); err != nil {
		return err
	}
	known := &s.layers[i].checked
	known.mu.Lock()
	defer known.mu.Unlock()
	if known.diffID != "" {
		return nil
	}
	var blob io.ReadCloser
	var err error
	if near != nil {
		blob, err = near.OpenRange(ctx, s.manifest.Layers[i], 0, -1)
	} else {
		blob, err = s.openBlob(ctx, i, 0, -1)
	}
	if err != nil {
		return err
	}
	defer blob.Close()
	off := int64(0)
	watched := &iox.Watched{ReadCloser: blob, Saw: func(b []byte, err error) error {
		if off += int64(len(b)); moved != nil {
			moved(off)
		}
		return err
	}}
	diffID, err := s.verifyTarBlob(ctx, i, watched)
	if err != nil {
		return s.inLayer(i, err)
	}
	known.diffID = diffID
	return nil
}

// LayerError says in which layer of an artifact something is wrong.
type LayerError struct {
	Digest digest.Digest
	Err    error
}

func (e *LayerError) Error() string { return fmt.Sprintf("layer %s: %v", e.Digest, e.Err) }

func (e *LayerError) Unwrap() error { return e.Err }

func (s *Source) inLayer(i int, err error) error {
	return &LayerError{Digest: s.manifest.Layers[i].Digest, Err: err}
}
