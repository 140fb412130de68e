package pt2

import (
	"errors"
	"fmt"
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
	files := map[string][]File{}
	var folders []string
	for _, f := range o.a.Files {
		rest, ok := strings.CutPrefix(f.Name, aotInductorDir)
		if !ok {
			continue
		}
		folder, _, ok := strings.Cut(rest, "/")
		if !ok {
			o.find("%s lies in no package", quote(f.Name))
			continue
		}
		if files[folder] == nil {
			folders = append(folders, folder)
		}
		files[folder] = append(files[folder], f)
	}
	if len(folders) > maxPackages {
		return errtext.Limit(ErrFormat, "holds %d compiled packages, want at most %d", len(folders), maxPackages)
	}
	slices.Sort(folders)
	names := o.packageNames(folders)
	for _, folder := range folders {
		name := names[folder]
		p := Package{Folder: folder, Backend: strings.TrimPrefix(strings.TrimPrefix(folder, name), "-"), Files: files[folder]}
		if err := o.pack(&p); err != nil {
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

// pack reads a package's documents.
func (o *opener) pack(p *Package) error {
	folder := aotInductorDir + p.Folder + "/"
	for _, f := range p.Files {
		name := strings.TrimPrefix(f.Name, folder)
		var err error
		switch {
		case path.Dir(name) != "." || path.Ext(name) != ".json":
		case name == "weights_config.json":
			err = o.packWeights(p, f.Name)
		case strings.HasSuffix(name, "kernel_metadata.json"), name == "custom_objs_config.json":
		case strings.HasSuffix(name, "_metadata.json"):
			err = o.packMetadata(p, f.Name)
		default:
			err = o.customOps(p, f.Name)
		}
		if err != nil {
			return err
		}
	}
	p.Device = p.Metadata["AOTI_DEVICE_KEY"]
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
			t := Tensor{Name: name, Pickled: true, why: "is pickled", Offset: -1, Length: -1, BigEndian: o.a.ByteOrder == "big"}
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
		return fmt.Errorf("has %d values, want a file, shape, strides and offset", n)
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
	return checkSize(t.Shape, 16)
}

// customOps reads the operators of <uuid>.json: {"nodes": [{"name": …, "node":
// {"target": …}}]}, ExternKernelNodes of the schema. A document of another shape
// says nothing.
func (o *opener) customOps(p *Package, file string) error {
	return o.files.document(file, func(r *jsonstream.Reader) error {
		if c, err := r.Peek(); err != nil || c != '{' {
			if err == nil {
				err = r.Skip()
			}
			return err
		}
		return r.Object(func(key string) error {
			c, err := r.Peek()
			if err == nil && (key != "nodes" || c != '[') {
				return r.Skip()
			}
			if err != nil {
				return err
			}
			return r.Array(func() error { return o.customOp(p, r) })
		})
	})
}

// maxCustomOps is the most distinct operators that are listed.
const maxCustomOps = 10_000

// customOp reads one node.
func (o *opener) customOp(p *Package, r *jsonstream.Reader) error {
	return r.Object(func(key string) error {
		if key != "node" {
			return r.Skip()
		}
		return r.Object(func(key string) error {
			if key != "target" {
				return r.Skip()
			}
			target, err := r.String()
			if i, found := slices.BinarySearch(p.CustomOps, target); err == nil && !found {
				if len(p.CustomOps) == maxCustomOps {
					return errtext.Limit(ErrFormat, "more than %d operators", maxCustomOps)
				}
				p.CustomOps = slices.Insert(p.CustomOps, i, target)
				err = o.files.keep(0, target)
			}
			return err
		})
	})
}
