// Package formats is the table of the formats of model files that are looked into.
package formats

import (
	"slices"

	"github.com/carton-oci/carton-oci/internal/filekind"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
	"github.com/carton-oci/carton-oci/pkg/modelfile/gguf"
	"github.com/carton-oci/carton-oci/pkg/modelfile/pt2"
	"github.com/carton-oci/carton-oci/pkg/modelfile/safetensors"
)

// Table has a line a format. What is called otherwise in internal/filekind is known
// by its name alone.
var Table = []modelfile.Format{
	safetensors.Format,
	gguf.Format,
	pt2.Format,
}

// Of returns the format of a file with this base name, nil where its name tells none
// that is looked into.
func Of(base string) *modelfile.Format {
	i := slices.IndexFunc(Table, func(f modelfile.Format) bool { return f.Name == filekind.FormatOf(base) })
	if i < 0 {
		return nil
	}
	return &Table[i]
}
