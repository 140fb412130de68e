package pack

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/localfile"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/modelfile/gguf"
	"github.com/carton-oci/carton-oci/pkg/modelfile/pmf"
)

// collect finds the files of the carton at paths.
func (p *packer) collect(paths []string) error {
	if len(paths) == 0 {
		return optionsf("got no file or folder to pack")
	}
	for _, name := range paths {
		info, err := os.Stat(name)
		if err != nil {
			return bare(name, err)
		}
		switch {
		case info.IsDir() && len(paths) > 1:
			return optionsf("%s is a folder: want one folder, or files", errtext.Quote(name))
		case info.IsDir():
			return p.collectFolder(name)
		case !info.Mode().IsRegular():
			return refuse(name, "is neither a file nor a folder, but %s", localfile.Kind(info.Mode()))
		}
		if err := p.collectFile(name, info, len(paths) == 1); err != nil {
			return err
		}
		if len(paths) == 1 {
			return p.collectParts(name)
		}
	}
	return nil
}

// collectParts adds the other parts of a split model that a file is one of, where
// they lie beside it, as whoever loads one of them does.
func (p *packer) collectParts(name string) error {
	dir, base := filepath.Split(name)
	all, number, of, ok := gguf.ParsePartName(base)
	if !ok {
		return nil
	}
	before, after, _ := strings.Cut(all, "*")
	for n := 1; n <= of; n++ {
		other := fmt.Sprintf("%s%05d%s", filepath.Join(dir, before), n, after)
		info, err := os.Stat(other)
		if n == number || errors.Is(err, fs.ErrNotExist) {
			continue // what is missing is said of all at once
		}
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return refuse(other, "is neither a file nor a folder, but %s", localfile.Kind(info.Mode()))
		}
		if err := p.collectFile(other, info, false); err != nil {
			return err
		}
	}
	return nil
}

// bare takes the path out of an error, which the caller's reader knows.
func bare(name string, err error) error {
	var e *fs.PathError
	if errors.As(err, &e) && e.Path == name {
		return e.Err
	}
	return err
}

// open opens a folder for the carton's lifetime, once.
func (p *packer) open(dir string) (*os.Root, error) {
	if root := p.opened[dir]; root != nil {
		return root, nil
	}
	root, err := localfile.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	if p.opened == nil {
		p.opened = map[string]*os.Root{}
	}
	p.opened[dir] = root
	p.roots = append(p.roots, root)
	return root, nil
}

// openAround opens the folder of a file that the user names, which may be a symlink
// to anywhere. base is the file's name in it.
func (p *packer) openAround(name string) (root *os.Root, base string, err error) {
	at, err := filepath.EvalSymlinks(name)
	if err != nil {
		return nil, "", err
	}
	root, err = p.open(filepath.Dir(at))
	return root, filepath.Base(at), err
}

// collectFolder finds the files of a folder: of a carton that lacks its
// MANIFEST, a tree in the Plums Model Format, a snapshot in a hub's cache, or
// anything else.
func (p *packer) collectFolder(dir string) error {
	w := &walk{below: modelFolder, paths: &p.paths}
	s, err := findSnapshot(dir)
	if err != nil {
		return bare(dir, err)
	}
	if s != nil {
		dir, w.base, w.inCache = s.cache, s.base, true
		p.out.Snapshot, _ = s.commit()
		p.out.Repository = s.repository()
	}
	if w.root, err = p.open(dir); err != nil {
		return bare(dir, err)
	}
	files, err := fs.Sub(localfile.FS(w.root), path.Clean(w.base))
	if err != nil {
		return err
	}
	if err := p.whatFolder(w, files); err != nil {
		return err
	}
	if w.rules, err = p.rulesOf(files); err != nil {
		return err
	}
	if err := w.collect(); err != nil {
		return err
	}
	if err := p.took(w); err != nil || s == nil {
		return err
	}
	return p.checkWhole(w.root, s, w.rules)
}

// took takes the files that a walk has found.
func (p *packer) took(w *walk) error {
	if err := p.refuseSecrets(w.files); err != nil {
		return err
	}
	if len(w.files) == 0 {
		return &carton.Error{Kind: carton.ErrFormat, Msg: "holds no files"}
	}
	p.warnGone(w)
	p.hintInclude(w)
	p.files, p.out.LeftOut = append(p.files, w.files...), w.leftOut
	return nil
}

// whatFolder says what a folder is by what lies in it.
func (p *packer) whatFolder(w *walk, files fs.FS) error {
	switch hasInfo := isFile(files, carton.InfoName); {
	case isFile(files, "oci-layout") && isFile(files, "index.json"):
		return hint.With(optionsf("it is an OCI image layout, and no model"), "what is in it is named oci:DIR:TAG")
	case !hasInfo && isDir(files, carton.InfoName):
		return refuse(carton.InfoName, "is a folder, and should be a file")
	case isCartonIn(files):
		if !p.opts.Update {
			err := fmt.Errorf("%w: it has a %s", ErrCarton, carton.ManifestName)
			err = hint.With(err, "%s makes it a new MANIFEST, if its files were changed", hint.Update)
			return hint.With(err, "push it as it is: %s", hint.Push)
		}
		w.below, w.skip = "", []string{carton.ManifestName}
		if target, err := fs.ReadLink(files, carton.ModelsName); err == nil && target == carton.ModelsTarget {
			w.skip = append(w.skip, carton.ModelsName) // a mounted image's, and no member
		}
		return errors.Join(p.keepInfo(w, files), w.keepListed(files))
	case p.opts.Update:
		return optionsf("it is no carton whose MANIFEST could be made anew: it has no %s and %s",
			carton.InfoName, carton.ManifestName)
	case hasInfo:
		if isDir(files, "model") || isDir(files, "misc") || isDir(files, "tensor_data") {
			w.below = ""
		} else {
			w.skip = []string{carton.InfoName} // it is the carton's
		}
		return p.keepInfo(w, files)
	}
	is, err := pmf.Detect(files)
	if err != nil {
		return err
	}
	if is {
		return p.readTree(files)
	}
	if pmf.Headless(files) {
		p.warnf("is laid out like a tree of the Plums Model Format, and has no metadata.yaml: it is packed as a " +
			"folder like any other")
	}
	return nil
}

func isFile(files fs.FS, name string) bool {
	info, err := fs.Stat(files, name)
	return err == nil && info.Mode().IsRegular()
}

func isDir(files fs.FS, name string) bool {
	info, err := fs.Stat(files, name)
	return err == nil && info.IsDir()
}

// keepInfo takes the carton.toml of a folder that is laid out as a carton.
func (p *packer) keepInfo(w *walk, files fs.FS) error {
	if what := p.opts.describes(); what != "" {
		return optionsf("the folder has a carton.toml, which is kept as it is, and %s is given beside it", what)
	}
	if p.opts.InfoFile != "" {
		return optionsf("the folder has a carton.toml, which is kept as it is, and another is given")
	}
	switch links := isFile(files, carton.LinksName); {
	case links && p.opts.Update:
		err := &carton.Error{
			Path: carton.LinksName, Kind: carton.ErrFormat,
			Msg: "is there: what it links would have to be at hand for a new MANIFEST",
		}
		return hint.With(err, "make it whole, and change that: %s DIR %s OTHER", hint.Pull, hint.Unpack)
	case links:
		return &carton.Error{
			Path: carton.LinksName, Kind: carton.ErrFormat,
			Msg: "is there without a MANIFEST that says what it links",
		}
	}
	var err error
	p.given, err = readSmall(files, carton.InfoName, carton.InfoName, carton.MaxInfoBytes)
	return err
}

// readSmall reads a file of a folder, which must have at most limit bytes. shown is
// what errors call it.
func readSmall(files fs.FS, name, shown string, limit int64) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		return nil, &carton.Error{
			Path: shown, Kind: carton.ErrLimit,
			Msg: fmt.Sprintf("is larger than %d bytes", limit),
		}
	}
	return b, err
}

// keepListed keeps what MANIFEST lists, whatever the rules leave out, and leaves
// out MANIFEST itself.
func (w *walk) keepListed(files fs.FS) error {
	raw, err := readSmall(files, carton.ManifestName, carton.ManifestName, carton.MaxManifestBytes)
	if err != nil {
		return err
	}
	m, err := carton.ParseManifest(raw)
	if err != nil {
		return err
	}
	w.listed = map[string]bool{}
	for _, e := range m.Entries() {
		w.listed[e.Path] = true
	}
	return nil
}

// warnGone says what the old MANIFEST lists and the folder lacks: somebody took it
// out, or a copy was cut short.
func (p *packer) warnGone(w *walk) {
	gone := maps.Clone(w.listed)
	delete(gone, carton.InfoName)
	delete(gone, carton.IndexName) // made where it is not there
	for _, f := range w.files {
		delete(gone, f.path)
	}
	if len(gone) == 0 {
		return
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(gone)) {
		names = append(names, errtext.Quote(name))
	}
	p.warnf("the folder lacks %d of the %d files that its %s lists, and so will the carton: %s",
		len(names), len(w.listed), carton.ManifestName, firstOf(names, 3))
}

// collectFile finds one file. alone says that it is all there is, and may get
// the name that its runner looks for.
func (p *packer) collectFile(name string, info fs.FileInfo, alone bool) error {
	if isCarton(name) {
		return hint.With(ErrCarton, "push it as it is: %s", hint.Push)
	}
	root, base, err := p.openAround(name)
	if err != nil {
		return err
	}
	f := &file{path: modelFolder + filepath.Base(name), root: root, name: base, size: info.Size()}
	if alone {
		if err := p.rename(f); err != nil {
			return err
		}
	}
	if err := p.paths.Add(f.path); err != nil {
		return err
	}
	p.files = append(p.files, f)
	return nil
}

// addFolders adds misc/, tensor_data/ and a carton.toml that was given.
func (p *packer) addFolders() error {
	for _, extra := range []struct{ dir, below string }{{p.opts.Misc, miscFolder}, {p.opts.TensorData, tensorFolder}} {
		if extra.dir == "" {
			continue
		}
		root, err := p.open(extra.dir)
		if err != nil {
			return err
		}
		w := &walk{root: root, below: extra.below, paths: &p.paths}
		if w.rules, err = p.rulesOf(localfile.FS(root)); err == nil {
			err = w.collect()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", errtext.Quote(extra.dir), err)
		}
		if err := p.refuseSecrets(w.files); err != nil {
			return err
		}
		p.files = append(p.files, w.files...)
		for _, name := range w.leftOut {
			p.out.LeftOut = append(p.out.LeftOut, extra.below+name)
		}
		if extra.below == tensorFolder {
			if err := p.readIndex(root); err != nil {
				return err
			}
		}
	}
	if p.opts.InfoFile == "" {
		return nil
	}
	var err error
	p.given, err = localfile.Read(p.opts.InfoFile, carton.MaxInfoBytes)
	return err
}
