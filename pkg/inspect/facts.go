package inspect

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/dtype"
	"github.com/carton-oci/carton-oci/internal/filekind"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
)

// Facts are what a carton's weights are.
type Facts struct {
	// Format is the format with the most bytes, "" where no name tells one.
	Format string
	// Formats are all of them, most bytes first.
	Formats []Share
	// Precision is the types of all tensors that were counted, most bytes first,
	// joined with commas: "bfloat16,float32".
	Precision string
	// Precisions are the same types with the bytes of each.
	Precisions []Share
	// Parameters is how many elements those tensors have; -1 where no file says.
	Parameters int64
	// Models are the models inside PT2 archives, and those that headers of GGUF files
	// describe: each once, however many files it is split into.
	Models []Model
	// Notes say what could not be counted.
	Notes []Note
	// Findings say what was not checked of PT2 archives, or looks wrong.
	Findings []Note
}

// Share is how many bytes something makes.
type Share struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// Model is one model of a file that holds several by name.
type Model struct {
	Member string // that the file is
	modelfile.Model
}

// count is how much there is of one type.
type count struct {
	Elements, Bytes int64
}

// Describe finds out what the weights are, from members below model/ whose names
// tell a format. Of a safetensors file all tensors count, unless it is a
// copy of what is counted already (see copies); of a PT2 archive the parameters, or
// all weights where it calls none a parameter. What several names or models of an
// archive share counts once: what begins at the same element of the same storage, of
// several views the largest.
//
// Sizes must be known: [carton.Member] Size of -1 counts as 0 bytes of a format.
func Describe(ctx context.Context, src carton.Source, opts Options) (*Facts, error) {
	members, err := src.Members(ctx)
	if err != nil {
		return nil, err
	}
	return DescribeMembers(ctx, src, members, opts)
}

// DescribeMembers is [Describe] of a source whose members are in hand.
func DescribeMembers(ctx context.Context, src carton.Source, members []carton.Member, opts Options) (*Facts, error) {
	if !opts.Anywhere {
		members = slices.DeleteFunc(slices.Clone(members),
			func(m carton.Member) bool { return !strings.HasPrefix(m.Path, "model/") })
	}
	all := filesOf(members)
	formats := map[string]int64{}
	for _, f := range all {
		formats[f.format] = modelfile.Add(formats[f.format], max(f.Size, 0))
	}
	files := readable(all)
	facts := make([]content, len(files))
	err := scan(ctx, files, opts, func(ctx context.Context, i int, s *budget) error {
		c, err := look(ctx, src, files[i], opts, s)
		c.types, c.layout = countTypes(c.Tensors), layoutOf(c.Tensors)
		c.Tensors = nil
		facts[i] = c
		return err
	})
	if err != nil {
		return nil, err
	}
	sets, notes, err := shardSets(ctx, src, members, opts)
	if err != nil {
		return nil, err
	}
	parts := partSets(facts)
	notes = append(notes, joinParts(parts)...)
	uncounted := copies(members, files, facts, sets)
	maps.Copy(uncounted, ggufCopies(parts))
	for hash := range uncounted {
		facts[slices.IndexFunc(facts, func(c content) bool { return c.Hash == hash })].types = nil
	}
	out := sum(facts)
	out.Notes = append(out.Notes, notes...)
	out.Formats = byBytes(formats)
	if len(out.Formats) > 0 {
		out.Format = out.Formats[0].Name
	}
	return out, nil
}

// sum adds the facts of files up.
func sum(facts []content) *Facts {
	out := &Facts{}
	bytes, counted := map[string]int64{}, false
	for i := range facts {
		c := &facts[i]
		for dtype, n := range c.types {
			out.Parameters = modelfile.Add(out.Parameters, n.Elements)
			counted = true
			if name := precisionOf(dtype); name != "" {
				bytes[name] = modelfile.Add(bytes[name], n.Bytes)
			}
		}
		for _, m := range c.Models {
			out.Models = append(out.Models, Model{c.Path, m})
		}
		out.Notes = append(out.Notes, c.notes()...)
		for _, text := range c.Findings {
			out.Findings = append(out.Findings, Note{Member: c.Path, Text: text})
		}
	}
	out.Precisions = byBytes(bytes)
	var names []string
	for _, p := range out.Precisions {
		names = append(names, p.Name)
	}
	out.Precision = strings.Join(names, ",")
	if !counted {
		out.Parameters = -1
	}
	return out
}

// precisionOf returns ModelPack's name for a type; one that it has none for is its
// own name in lower case.
func precisionOf(name string) string {
	if t := dtype.Named(name); t != nil {
		return t.ModelPack
	}
	return filekind.LowerASCII(name)
}

// byBytes returns the names, most bytes first, ties by name.
func byBytes(bytes map[string]int64) []Share {
	var shares []Share
	for _, name := range slices.Sorted(maps.Keys(bytes)) {
		shares = append(shares, Share{name, bytes[name]})
	}
	slices.SortStableFunc(shares, func(a, b Share) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return shares
}

// countTypes counts a file's tensors by type.
func countTypes(tensors []modelfile.Tensor) map[string]count {
	types := map[string]count{}
	modelfile.Counted(tensors, func(t *modelfile.Tensor) {
		n := types[t.DType]
		n.Elements, n.Bytes = modelfile.Add(n.Elements, t.Elements()), modelfile.Add(n.Bytes, max(t.Bytes, 0))
		types[t.DType] = n
	})
	return types
}
