package pack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/carton-oci/carton-oci/internal/filekind"
	"github.com/carton-oci/carton-oci/internal/localfile"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// OpenLoose shows files that are no carton as [Open] would lay them out, without
// what Open makes: carton.toml, unless there is one, and hashes. Nothing is read
// but what the files say of themselves, and nothing is asked for; Info is what they
// said. What Open would refuse as broken is a warning.
//
// Content is not verified: nothing says what it should be. The hashes of members
// and MANIFEST tell files apart and nothing else, and are not to be shown; they are
// those of the files, and content is verified by them, where Options.Hashes asks for it.
func OpenLoose(ctx context.Context, paths []string, opts Options) (*Carton, error) {
	opts.AllowInvalid = true
	return pack(opts, func(p *packer) error { return p.view(ctx, func() error { return p.collect(paths) }) })
}

func (p *packer) view(ctx context.Context, collect func() error) error {
	if err := p.look(ctx, collect); err != nil {
		return err
	}
	if p.opts.Hashes {
		if err := p.hashAll(ctx); err != nil {
			return err
		}
		src, err := newSource(p.files, p.roots)
		p.out.Source = src
		return err
	}
	for _, f := range p.files {
		end := p.final(f)
		sum := sha256.Sum256([]byte(end.path))
		f.hash, f.size = hex.EncodeToString(sum[:]), end.size
	}
	src, err := newSource(p.files, p.roots)
	if err != nil {
		return err
	}
	p.out.Source = looseSource{src}
	return nil
}

// look finds the files, and what they say of themselves.
func (p *packer) look(ctx context.Context, collect func() error) error {
	for _, step := range []func() error{collect, ctx.Err, p.readFiles, p.readFrontMatter, p.fillFromHeaders} {
		if err := step(); err != nil {
			return err
		}
	}
	p.out.PMF, p.out.Info = p.pmf, p.knownInfo()
	return nil
}

// knownInfo is what the files told, or the carton.toml among them.
func (p *packer) knownInfo() *carton.Info {
	if p.given != nil {
		return carton.ParseInfoLoosely(p.given)
	}
	info := p.opts.Info
	info.SpecVersion = 1
	return &info
}

// IsCartonFolder reports whether a folder is a carton: it has MANIFEST and
// carton.toml, of whatever kind they are. Any other file may be called MANIFEST.
func IsCartonFolder(dir string) bool { return isCartonIn(os.DirFS(dir)) }

func isCartonIn(files fs.FS) bool {
	_, err := fs.Lstat(files, carton.ManifestName)
	_, infoErr := fs.Lstat(files, carton.InfoName)
	return err == nil && infoErr == nil
}

// IsLoose reports whether what lies at a path is no carton, and not a broken one
// either, but files that a carton can be made of.
func IsLoose(name string) bool {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return false
	case info.IsDir():
		return !IsCartonFolder(name)
	case !info.Mode().IsRegular() || strings.HasSuffix(name, ".carton"):
		return false
	case filekind.FormatOf(filepath.Base(name)) != "":
		return !isCarton(name)
	}
	f, err := localfile.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 4)
	_, err = f.ReadAt(head, 0)
	return err != nil || string(head) != "PK\x03\x04" // a zip is meant to be a carton
}

// isCarton reports whether a file is called a carton, or is one by another name.
func isCarton(name string) bool {
	if strings.HasSuffix(name, ".carton") {
		return true
	}
	src, err := carton.Open(name)
	if err != nil {
		return false
	}
	src.Close()
	return true
}
