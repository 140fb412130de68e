package convert

import (
	"context"
	"errors"
	"io"

	"github.com/opencontainers/go-digest"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// Plain reports whether the source is a model artifact that holds no carton,
// opened as it is with OpenOptions.Plain: its members are the artifact's files
// under their own names, and it has no carton.toml. What Manifest returns then
// lists the members, but is nobody's MANIFEST: its model hash means nothing.
func (s *Source) Plain() bool { return s.plain }

// Hashed reports whether a member's hash is that of its content. Of the files in
// a plain artifact's tar layers it is not: they would have to be read for it. What
// is read of them is verified by their layer's digest.
func (s *Source) Hashed(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.places[path]
	return p == nil || !p.unhashed
}

// openPlain makes the members of what was found. A file in a tar layer, whose
// hash nobody knows, has that of where it is: other files have others.
func (s *Source) openPlain(files []foundFile) error {
	s.plain = true
	byPath := map[string]*foundFile{}
	for i := range files {
		f := &files[i]
		byPath[f.path] = f
		if f.hash == "" && f.place.link == "" {
			f.place.unhashed = true
			f.hash = digest.FromString(s.manifest.Layers[f.place.layer].Digest.String() + "\x00" + f.path).Encoded()
		}
	}
	for i := range files {
		if end := finalFile(&files[i], byPath); end != nil {
			files[i].place.unhashed = end.place.unhashed
		}
	}
	return s.useFiles(files, "")
}

// openUnhashed opens a file in a tar layer by reading the layer from its
// beginning to its end, so that its digest vouches for the file: who reads up to
// io.EOF has read verified content.
func (s *Source) openUnhashed(ctx context.Context, path string, p *place) (io.ReadCloser, error) {
	tar, err := s.openVerifiedTar(ctx, p.layer)
	if err != nil {
		return nil, err
	}
	t := layout.NewTarReader(tar)
	for {
		h, err := t.Next()
		switch {
		case err == io.EOF: //nolint:errorlint // Next's own
			return nil, errors.Join(errTarChanged(path), tar.Close())
		case err != nil:
			return nil, errors.Join(err, tar.Close())
		case h.Path == path && h.Offset == p.off && h.Size == p.size:
			return &tarFile{ReadCloser: tar, t: t}, nil
		}
	}
}

// tarFile reads one file of a tar, and what follows up to the tar's end, before it
// says io.EOF.
type tarFile struct {
	io.ReadCloser
	t *layout.TarReader
}

func (f *tarFile) Read(p []byte) (int, error) {
	n, err := f.t.Read(p)
	if err != io.EOF { //nolint:errorlint // a wrapped EOF is a fault, not the end
		return n, err
	}
	for err == io.EOF || err == nil { //nolint:errorlint // Next's own
		if _, err = f.t.Next(); err == io.EOF { //nolint:errorlint // Next's own
			return n, io.EOF
		}
	}
	return n, err
}

// VerifyLayers reads every layer of the artifact and holds it against its digest;
// tar layers must be tars. told, which may be nil, gets the bytes of each blob.
// The error is for the first layer that is not what the image manifest says.
func (s *Source) VerifyLayers(ctx context.Context, told func(n int64)) error {
	for i, desc := range s.manifest.Layers {
		if err := s.verifyLayer(ctx, i); err != nil {
			return s.inLayer(i, err)
		}
		if told != nil {
			told(desc.Size)
		}
	}
	return nil
}

func (s *Source) verifyLayer(ctx context.Context, i int) error {
	if s.layers[i].format != formatRaw {
		return s.visitTar(ctx, i, func(h *layout.TarHeader, _ io.Reader) error {
			if h.Folder && h.Path == "." {
				return nil
			}
			return carton.CheckPath(h.Path)
		})
	}
	blob, err := layout.OpenBlob(ctx, s.fetcher, s.manifest.Layers[i])
	if err != nil {
		return err
	}
	defer blob.Close()
	_, err = io.Copy(io.Discard, blob)
	return err
}
