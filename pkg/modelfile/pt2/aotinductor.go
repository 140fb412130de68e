package pt2

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/jsonstream"
)

// maxPackages is the most compiled packages that are read.
const maxPackages = 1000

// compiled reads the AOTInductor packages: data/aotinductor/<m>[-<backend>]/….
func (o *opener) compiled() error {
	files := map[string][]string{} // by folder
	for _, name := range o.names {
		rest, ok := strings.CutPrefix(name, aotInductorDir)
		if !ok {
			continue
		}
		folder, file, ok := strings.Cut(rest, "/")
		if !ok {
			o.find("%s lies in no package", quote(name))
			continue
		}
		files[folder] = append(files[folder], file)
	}
	folders := slices.Sorted(maps.Keys(files))
	if len(folders) > maxPackages {
		return errtext.Limit(ErrFormat, "holds %d compiled packages, more than %d", len(folders), maxPackages)
	}
	names := o.packageNames(folders)
	for _, folder := range folders {
		name := names[folder]
		p := Package{Folder: folder, Backend: strings.TrimPrefix(strings.TrimPrefix(folder, name), "-")}
		if err := o.readPackage(&p, files[folder]); err != nil {
			return err
		}
		m := o.model(name)
		m.AOTInductor = append(m.AOTInductor, p)
	}
	return nil
}

// packageNames says which model each package's folder is of. A name may hold a
// "-" itself, so evidence decides: a model that the archive names, the longest
// first; else the specification's <m>-<backend> where two folders share what is
// before the last "-"; else the whole name.
func (o *opener) packageNames(folders []string) map[string]string {
	known := map[string]bool{}
	for name := range o.models {
		known[name] = true
	}
	for _, name := range o.named("data/sample_inputs/", ".pt") {
		known[name] = true
	}
	shared := map[string]int{}
	for _, f := range folders {
		if i := strings.LastIndexByte(f, '-'); i > 0 {
			shared[f[:i]]++
		}
	}
	names := map[string]string{}
	for _, f := range folders {
		names[f] = f
		if known[f] {
			continue
		}
		for i := len(f) - 1; i > 0; i-- {
			if f[i] == '-' && known[f[:i]] {
				names[f] = f[:i]
				break
			}
		}
		if i := strings.LastIndexByte(f, '-'); names[f] == f && i > 0 && shared[f[:i]] > 1 {
			names[f] = f[:i]
		}
	}
	return names
}

// readPackage reads a package's documents, of the files in its folder, and finds
// what it takes to run it: a compiled library, or the code that torch compiles where
// it finds none.
func (o *opener) readPackage(p *Package, files []string) error {
	folder := aotInductorDir + p.Folder + "/"
	var library, code bool
	for _, name := range files {
		var err error
		switch {
		case name == "weights_config.json":
			err = o.packWeights(p, folder+name)
		case strings.HasSuffix(name, "kernel_metadata.json"):
		case strings.HasSuffix(name, "_metadata.json") && path.Dir(name) == ".":
			err = o.packMetadata(p, folder+name)
		}
		if err != nil {
			return err
		}
		switch path.Ext(name) {
		case ".so", ".pyd", ".dylib", ".dll":
			library = true
		case ".cpp":
			code = code || !strings.HasSuffix(name, ".kernel.cpp")
		}
	}
	p.Device = p.Metadata["AOTI_DEVICE_KEY"]
	switch {
	case library:
	case code:
		o.find("%s holds no compiled library (.so): torch compiles its .cpp each time it is loaded",
			errtext.Quote(aotInductorDir+p.Folder))
	default:
		o.find("%s holds no compiled library (.so): torch cannot load it", errtext.Quote(aotInductorDir+p.Folder))
	}
	return nil
}

// packMetadata reads the metadata that the compiler wrote. What is no string is
// left out.
func (o *opener) packMetadata(p *Package, file string) error {
	return o.files.document(file, func(r *jsonstream.Reader) error {
		return r.Object(func(key string) error {
			if c, err := r.Peek(); err != nil || c != '"' {
				if err == nil {
					err = r.Skip()
				}
				return err
			}
			value, err := r.String()
			if err == nil {
				err = o.files.keep(0, key, value)
			}
			if p.Metadata == nil {
				p.Metadata = map[string]string{}
			}
			p.Metadata[key] = value
			return err
		})
	})
}

// packWeights reads a weights_config.json: {"fqn": ["weight_0", shape, strides,
// offset]}. The files are pickles.
func (o *opener) packWeights(p *Package, file string) error {
	return o.files.document(file, func(r *jsonstream.Reader) error {
		return r.Object(func(name string) error {
			t := Tensor{Name: name, Pickled: true, why: "is pickled", Offset: -1, BigEndian: o.bigEndian}
			i := 0
			err := r.Array(func() (err error) {
				switch i++; i {
				case 1:
					t.File, err = r.String()
					t.File = weightsDir + t.File
				case 2:
					t.Shape, err = r.Naturals(MaxDims)
				case 3:
					t.Stride, err = r.Naturals(MaxDims)
				case 4:
					t.StorageOffset, err = r.Natural()
				default:
					err = errors.New("has more than 4 values")
				}
				return err
			})
			if err == nil {
				err = o.packWeight(&t, i)
			}
			if err != nil {
				return within(name, err)
			}
			p.Weights = append(p.Weights, t)
			return nil
		})
	})
}

// packWeight checks a weight of which n values were read.
func (o *opener) packWeight(t *Tensor, n int) error {
	if err := o.another(2 * len(t.Shape)); err != nil {
		return err
	}
	switch {
	case n != 4:
		return fmt.Errorf("has %d values, and not a file, shape, strides and offset", n)
	case !o.files.has(t.File):
		return fmt.Errorf("lies in %s, which the archive does not hold", quote(t.File))
	case len(t.Shape) != len(t.Stride):
		return fmt.Errorf("has %d strides for %d dimensions", len(t.Stride), len(t.Shape))
	}
	o.blobs[t.File] = true
	if _, _, err := t.extent(); err != nil {
		return err
	}
	if err := o.files.keep(0, t.Name, t.File); err != nil {
		return err
	}
	_, err := checkSize(t.Shape, 16)
	return err
}
