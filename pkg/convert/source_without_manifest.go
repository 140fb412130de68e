package convert

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// regenerate makes the MANIFEST of an artifact that has none, and the
// carton.toml of one that is no carton. The digest of a raw layer is its
// member's hash; tar layers are read whole, and verified by theirs.
func (s *Source) regenerate(ctx context.Context) error {
	s.regenerated = true
	files, err := s.listAll(ctx)
	if err != nil {
		return err
	}
	prefix := ""
	isCarton := slices.ContainsFunc(files, func(f foundFile) bool { return f.path == carton.InfoName })
	if !isCarton {
		if s.opts.Wrap == nil && s.opts.Plain {
			return s.openPlain(files)
		}
		if s.opts.Wrap == nil {
			return errNoCarton()
		}
		prefix = wrapPrefix(files)
	}
	if err := s.hashTars(ctx, files); err != nil {
		return err
	}
	if !isCarton {
		if err := s.wrap(ctx); err != nil {
			return err
		}
	}
	s.addIndex(files, prefix)
	return s.useFiles(files, prefix)
}

// addIndex gives a carton without tensor_data/ the index that says so: the
// format's loader fails on one that has none.
func (s *Source) addIndex(files []foundFile, prefix string) {
	for i := range files {
		if strings.HasPrefix(prefix+files[i].path, path.Dir(carton.IndexName)+"/") {
			return
		}
	}
	if s.generated == nil {
		s.generated = map[string][]byte{}
	}
	s.generated[carton.IndexName] = []byte("tensor = []\n")
}

// foundFile is a file or symlink of an artifact without MANIFEST.
type foundFile struct {
	path  string
	hash  string // "" where it is not known yet, and for symlinks of tars
	place place
}

// listAll lists what the artifact holds.
func (s *Source) listAll(ctx context.Context) ([]foundFile, error) {
	var files []foundFile
	for i := range s.layers {
		l, desc := &s.layers[i], s.manifest.Layers[i]
		if l.format == formatRaw {
			p := place{layer: i, size: desc.Size, link: l.symlink}
			files = append(files, foundFile{path: l.name, hash: desc.Digest.Encoded(), place: p})
			continue
		}
		if err := s.scan(ctx, i); err != nil {
			return nil, err
		}
		for _, h := range l.entries {
			p := place{layer: i, size: h.Size, off: h.Offset, link: h.Target}
			files = append(files, foundFile{path: h.Path, place: p})
		}
	}
	if len(files) > carton.MaxMembers {
		return nil, &carton.Error{
			Kind: carton.ErrLimit, Msg: fmt.Sprintf("the artifact holds %d files, want at most %d", len(files),
				carton.MaxMembers),
		}
	}
	return files, nil
}

// wrapPrefix is the placement rule of plain models: every file x becomes
// model/x, so that they keep their places to each other; where all lie below
// model/ already, they stay.
func wrapPrefix(files []foundFile) string {
	outside := func(f foundFile) bool { return !strings.HasPrefix(f.path, modelFolder) }
	if slices.ContainsFunc(files, outside) {
		return modelFolder
	}
	return ""
}

// hashTars hashes the files inside tar layers.
func (s *Source) hashTars(ctx context.Context, files []foundFile) error {
	at := 0
	for i := range s.layers {
		if s.layers[i].format == formatRaw {
			at++
			continue
		}
		err := s.visitTar(ctx, i, func(h *layout.TarHeader, r io.Reader) error {
			if h.Folder {
				return nil
			}
			// The list of a large tar came through ranges that nobody verified.
			if at >= len(files) || files[at].path != h.Path || files[at].place.off != h.Offset ||
				files[at].place.link != h.Target {
				return errTarChanged(h.Path)
			}
			f := &files[at]
			at++
			if h.Target != "" {
				return nil
			}
			sum := sha256.New()
			_, err := io.Copy(sum, r)
			f.hash = hex.EncodeToString(sum.Sum(nil))
			return err
		})
		if err != nil {
			return fmt.Errorf("layer %s: %w", s.manifest.Layers[i].Digest, err)
		}
	}
	return nil
}

// useFiles makes MANIFEST of what was found, and of what was generated.
func (s *Source) useFiles(files []foundFile, prefix string) error {
	byPath := make(map[string]*foundFile, len(files))
	for i := range files {
		byPath[files[i].path] = &files[i]
	}
	var entries []carton.Entry
	for i := range files {
		f := &files[i]
		if f.hash == "" {
			end := finalFile(f, byPath)
			if end == nil {
				return &carton.Error{
					Path: f.path, Kind: carton.ErrFormat,
					Msg: "is a symlink that ends at no file of the artifact",
				}
			}
			f.hash = end.hash
		}
		entries = append(entries, carton.Entry{Path: prefix + f.path, Hash: f.hash})
	}
	for name, content := range s.generated {
		sum := sha256.Sum256(content)
		entries = append(entries, carton.Entry{Path: name, Hash: hex.EncodeToString(sum[:])})
	}
	var err error
	if s.carton, err = carton.NewManifest(entries); err != nil {
		return fmt.Errorf("the artifact has no MANIFEST, and none can be made: %w", err)
	}
	for i := range files {
		if err := s.add(prefix+files[i].path, &files[i].place); err != nil {
			return err
		}
	}
	for name, content := range s.generated {
		if err := s.add(name, &place{layer: -1, size: int64(len(content))}); err != nil {
			return err
		}
	}
	return s.finish()
}

// finalFile follows symlinks to a regular file, nil where there is none.
func finalFile(f *foundFile, byPath map[string]*foundFile) *foundFile {
	return finalOf(f, func(f *foundFile) (string, string) { return f.path, f.place.link }, byPath)
}
