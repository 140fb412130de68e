package gguf

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
)

// MaxParts is the most files that a model may be split into: split.count has 16
// bits.
const MaxParts = 65_535

// partName is how gguf-split names parts.
// https://github.com/ggml-org/llama.cpp/blob/067d44f/src/llama.cpp, llama_split_path
var partName = regexp.MustCompile(`^(.*)-([0-9]{5})-of-([0-9]{5})(\.[gG][gG][uU][fF])$`)

// PartName returns the name of one of the files of a split model: "m", 1, 3 is
// m-00001-of-00003.gguf.
func PartName(prefix string, number, of int) string {
	return fmt.Sprintf("%s-%05d-of-%05d.gguf", prefix, number, of)
}

// ParsePartName says which part a file is by its name; ok is false where that is
// no part's. all is a name of what the parts have in common, as in
// "m-*-of-00003.gguf".
func ParsePartName(base string) (all string, number, of int, ok bool) {
	m := partName.FindStringSubmatch(base)
	if m == nil {
		return "", 0, 0, false
	}
	number, _ = strconv.Atoi(m[2])
	of, _ = strconv.Atoi(m[3])
	return m[1] + "-*-of-" + m[3] + m[4], number, of, number >= 1 && number <= of && of > 1
}

// SetFile is a file of a split model.
type SetFile struct {
	Name    string // the base name
	Part    *modelfile.Part
	Tensors int
}

// CheckSet says why the files of a split model, which lie beside each other and are
// all that have such a name, are not the whole of it: a clause, whose subject is the
// model. nil is all. Broken says how many more there are that could not be read.
func CheckSet(files []SetFile, broken int) error {
	have := map[int]bool{}
	tensors := int64(0)
	var of int
	var all int64
	for _, f := range files {
		_, number, named, ok := ParsePartName(f.Name)
		switch {
		case f.Part == nil:
			return fmt.Errorf("%s is called a part, and does not say of itself that it is one", errtext.Quote(f.Name))
		case !ok || number != f.Part.Number || named != f.Part.Of:
			return fmt.Errorf("%s says of itself that it is part %d of %d, and is not called so", errtext.Quote(f.Name),
				f.Part.Number, f.Part.Of)
		case f.Part.Of != files[0].Part.Of || f.Part.Tensors != files[0].Part.Tensors:
			return fmt.Errorf("%s and %s say different things of the whole", errtext.Quote(files[0].Name),
				errtext.Quote(f.Name))
		}
		have[number] = true
		of, all = f.Part.Of, f.Part.Tensors
		tensors += int64(f.Tensors)
	}
	if broken > 0 || of == 0 {
		return nil // what is wrong with those is said
	}
	var missing []string
	for n := 1; n <= of; n++ {
		if !have[n] {
			missing = append(missing, fmt.Sprintf("%05d", n))
		}
	}
	switch {
	case len(missing) > 3:
		return fmt.Errorf("missing are %d of its %d parts: %s and others", len(missing), of,
			strings.Join(missing[:3], ", "))
	case len(missing) > 0:
		return fmt.Errorf("missing are %d of its %d parts: %s", len(missing), of, strings.Join(missing, ", "))
	case all >= 0 && tensors != all:
		return fmt.Errorf("its parts hold %d tensors, and should hold %d", tensors, all)
	}
	return nil
}
