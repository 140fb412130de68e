package pack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/carton-oci/carton-oci/internal/hint"
	"github.com/carton-oci/carton-oci/internal/localfile"
	"github.com/carton-oci/carton-oci/pkg/carton"
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
			return optionsf("%s is a folder: want one folder, or files", carton.QuotePath(name))
		case info.IsDir():
			return p.collectFolder(name)
		case !info.Mode().IsRegular():
			return refuse(name, "is neither a file nor a folder, but %s", kindOf(info.Mode()))
		}
		if err := p.collectFile(name, info, len(paths) == 1); err != nil {
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

// collectFolder finds the files of a folder: of a carton that lacks its
// MANIFEST, a tree in the Plums Model Format, or anything else.
func (p *packer) collectFolder(dir string) error {
	root, err := p.open(dir)
	if err != nil {
		return bare(dir, err)
	}
	w := &walk{root: root, below: modelFolder, paths: &p.paths}
	if isFile(root, carton.ManifestName) {
		return hint.With(fmt.Errorf("%w: it has a %s", ErrCarton, carton.ManifestName), "push it as it is: carton-oci push")
	}
	switch {
	case isFile(root, carton.InfoName) && isDir(root, "model"):
		if err := p.keepInfo(root); err != nil {
			return err
		}
		w.below = ""
	default:
		is, err := pmf.Detect(localfile.FS(root))
		if err != nil {
			return err
		}
		if is {
			if err := p.readTree(root); err != nil {
				return err
			}
		} else if pmf.Headless(localfile.FS(root)) {
			p.warnf("is laid out like a tree of the Plums Model Format, and has no metadata.yaml: it is packed as a folder like any other")
		}
	}
	if err := w.collect(); err != nil {
		return err
	}
	if err := p.refuseSecrets(w.files); err != nil {
		return err
	}
	if len(w.files) == 0 {
		return &carton.Error{Kind: carton.ErrFormat, Msg: "holds no files"}
	}
	p.files, p.out.LeftOut = append(p.files, w.files...), w.leftOut
	return nil
}

func isFile(root *os.Root, name string) bool {
	info, err := root.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

func isDir(root *os.Root, name string) bool {
	info, err := root.Stat(name)
	return err == nil && info.IsDir()
}

// keepInfo takes the carton.toml of a folder that is laid out as a carton.
func (p *packer) keepInfo(root *os.Root) error {
	if what := p.opts.describes(); what != "" {
		return optionsf("the folder has a carton.toml, which is kept as it is: got %s beside it", what)
	}
	if p.opts.InfoFile != "" {
		return optionsf("the folder has a carton.toml, which is kept as it is: got another")
	}
	if isFile(root, carton.LinksName) {
		return &carton.Error{Path: carton.LinksName, Kind: carton.ErrFormat, Msg: "is there without a MANIFEST that says what it links"}
	}
	f, err := localfile.OpenIn(root, carton.InfoName)
	if err != nil {
		return err
	}
	defer f.Close()
	p.given, err = readAll(f, carton.InfoName, carton.MaxInfoBytes)
	return err
}

// collectFile finds one file. alone says that it is all there is, and may get
// the name that its runner looks for.
func (p *packer) collectFile(name string, info fs.FileInfo, alone bool) error {
	if isCarton(name) {
		return hint.With(ErrCarton, "push it as it is: carton-oci push")
	}
	// What the user names may be a symlink to anywhere.
	at, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	root, err := p.open(filepath.Dir(at))
	if err != nil {
		return err
	}
	f := &file{path: modelFolder + filepath.Base(name), root: root, name: filepath.Base(at), size: info.Size()}
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
		if err := w.collect(); err != nil {
			return fmt.Errorf("%s: %w", carton.QuotePath(extra.dir), err)
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
