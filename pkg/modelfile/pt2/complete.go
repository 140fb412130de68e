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
	for i := range o.a.Models {
		o.completeModel(&o.a.Models[i])
	}
	var loose []string
	for _, file := range o.names {
		folder, name := path.Split(file)
		blob := folder == weightsDir && !strings.HasSuffix(name, weightsConfig) ||
			folder == constantsDir && !strings.HasSuffix(name, constantsConfig)
		if blob && !o.blobs[file] {
			loose = append(loose, file)
		}
	}
	if len(loose) > 0 {
		o.find("no config names %d of its files of weights and constants, such as %s",
			len(loose), errtext.Quote(loose[0]))
	}
}

// completeModel compares what a model's definition is given with what the archive
// has of it.
func (o *opener) completeModel(m *Model) {
	targets, defined := o.targets[m.Name]
	if !defined {
		return
	}
	if o.root != "" && !o.files.has(weightsDir+m.Name+weightsConfig) && !o.files.has(weightsDir+m.Name+".pt") {
		o.find("model %s has no %s: torch cannot load it", quote(m.Name),
			errtext.Quote(weightsDir+m.Name+weightsConfig))
	}
	lacking := slices.DeleteFunc(targets, func(name string) bool { return o.found[[2]string{m.Name, name}] })
	if len(lacking) > 0 {
		o.find("model %s: the archive lacks %d of the %d weights and constants that its definition names, such as %s",
			quote(m.Name), len(lacking), len(targets), quote(lacking[0]))
	}
}
