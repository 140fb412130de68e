package pt2

import (
	"path"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

// complete finds what the archive's documents promise and its files do not keep,
// and the other way round: torch refuses most of such archives, and some of them
// it loads with weights that nobody set.
func (o *opener) complete() {
	if len(o.models) == 0 {
		o.find("holds no models: torch writes such an archive where the export of a model fails")
	}
	for _, m := range o.a.Models {
		o.completeModel(&m)
		for i := range m.AOTInductor {
			o.completePackage(&m.AOTInductor[i])
		}
	}
	var loose []string
	for _, f := range o.a.Files {
		folder, name := path.Split(f.Name)
		blob := folder == weightsDir && !strings.HasSuffix(name, weightsConfig) || folder == constantsDir && !strings.HasSuffix(name, constantsConfig)
		if blob && !o.blobs[f.Name] {
			loose = append(loose, f.Name)
		}
	}
	if len(loose) > 0 {
		o.find("no config names %d of its files of weights and constants, such as %s", len(loose), errtext.Quote(loose[0]))
	}
}

// completeModel compares what a model's definition is given with what the archive
// has of it.
func (o *opener) completeModel(m *Model) {
	targets, defined := o.targets[m.Name]
	if !defined {
		return
	}
	if o.a.Layout == Export && !o.files.has(weightsDir+m.Name+weightsConfig) && !o.files.has(weightsDir+m.Name+".pt") {
		o.find("model %s has no %s: torch cannot load it", quote(m.Name), errtext.Quote(weightsDir+m.Name+weightsConfig))
	}
	have := map[string]bool{}
	for i := range m.Weights {
		have[m.Weights[i].Name] = true
	}
	for i := range m.Constants {
		have[m.Constants[i].Name] = true
	}
	for _, object := range m.Objects {
		have[object.Name] = true
	}
	lacking := slices.DeleteFunc(targets, func(name string) bool { return have[name] })
	if len(lacking) > 0 {
		o.find("model %s: the archive lacks %d of the %d weights and constants that its definition names, such as %s",
			quote(m.Name), len(lacking), len(targets), quote(lacking[0]))
	}
}

// completePackage wants what runs: a compiled library, or the code that torch
// compiles where it finds none.
func (o *opener) completePackage(p *Package) {
	var library, code bool
	for _, f := range p.Files {
		switch path.Ext(f.Name) {
		case ".so", ".pyd", ".dylib", ".dll":
			library = true
		case ".cpp":
			code = code || !strings.HasSuffix(f.Name, ".kernel.cpp")
		}
	}
	switch folder := errtext.Quote(aotInductorDir + p.Folder); {
	case library:
	case code:
		o.find("%s holds no compiled library (.so): torch compiles its .cpp each time it is loaded", folder)
	default:
		o.find("%s holds no compiled library (.so): torch cannot load it", folder)
	}
}
