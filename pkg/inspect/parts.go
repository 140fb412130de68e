package inspect

import (
	"path"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/filekind"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
	"github.com/carton-oci/carton-oci/pkg/modelfile/gguf"
)

// partSet is a split model: the GGUF files that are its parts, by their names.
type partSet struct {
	parts  []*content // that were read, by path
	broken int
}

// partSets finds the split models among files. A file that is no part is a set for
// itself.
func partSets(contents []content) []*partSet {
	var sets []*partSet
	named := map[string]*partSet{}
	for i := range contents {
		c := &contents[i]
		if c.file == nil || c.format != filekind.GGUF {
			continue
		}
		all, _, _, ok := gguf.ParsePartName(path.Base(c.Path))
		all = path.Join(path.Dir(c.Path), all)
		set := named[all]
		if set == nil || !ok {
			set = &partSet{}
			sets = append(sets, set)
		}
		if ok {
			named[all] = set
		}
		if c.read {
			set.parts = append(set.parts, c)
		} else {
			set.broken++
		}
	}
	for _, s := range sets {
		slices.SortFunc(s.parts, func(a, b *content) int { return strings.Compare(a.Path, b.Path) })
	}
	return sets
}

// check says what is missing of a split model.
func (s *partSet) check() []Note {
	if len(s.parts) == 0 {
		return nil
	}
	first := s.parts[0]
	if _, _, _, named := gguf.ParsePartName(path.Base(first.Path)); first.Part == nil && !named {
		return nil // whole
	}
	var files []gguf.SetFile
	for _, c := range s.parts {
		files = append(files, gguf.SetFile{Name: path.Base(c.Path), Part: c.Part, Tensors: c.tensors})
	}
	err := gguf.CheckSet(files, s.broken)
	if err == nil {
		return nil
	}
	text := "is part of a split model: " + err.Error()
	return []Note{{
		Member: first.Path, Text: text,
		Err: &carton.Error{Path: first.Path, Kind: carton.ErrFormat, Msg: text},
	}}
}

// joinParts makes one model of the parts of each split model, that of its first part.
// The notes say what is missing.
func joinParts(sets []*partSet) (notes []Note) {
	for _, s := range sets {
		notes = append(notes, s.check()...)
		var model *modelfile.Model
		bytes := map[string]int64{} // of all parts, by type
		for _, c := range s.parts {
			for name, n := range c.types {
				bytes[name] += n.Bytes
			}
			switch {
			case c.Part == nil:
			case c.Part.Number == 1 && len(c.Models) == 1:
				model = &c.Models[0]
				model.Parts = c.Part.Of
			case model != nil:
				model.Tensors += c.tensors
				for _, n := range c.types {
					model.Parameters = modelfile.Add(model.Parameters, n.Elements)
				}
			}
		}
		if types := byBytes(bytes); model != nil && model.Quantization == "" && len(types) > 0 {
			model.Quantization = types[0].Name
		}
	}
	return notes
}
