package inspect

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/byname"
	"github.com/carton-oci/carton-oci/internal/dtype"
	"github.com/carton-oci/carton-oci/pkg/carton"
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
	// Models are the models inside PT2 archives.
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

// Model is one model of a PT2 archive.
type Model struct {
	Member string // that the archive is
	Name   string
	// Torch is the version of torch that exported it, "" where it is not known.
	Torch string
	// Tensors is how many weights there are, Parameters how many elements count
	// as [Describe] counts them; -1 where their types are not known.
	Tensors    int
	Parameters int64
	// Backends are those that AOTInductor compiled it for.
	Backends []Backend
}

// Backend is one compiled form of a model.
type Backend struct {
	Name   string `json:"backend"`          // "" where it has none
	Device string `json:"device,omitempty"` // "cpu"; "" where it is not known
}

// count is how much there is of one type.
type count struct {
	Elements, Bytes int64
}

// fileFacts are what is known of one file. A file that is broken has none: its
// content is its author's affair.
type fileFacts struct {
	Types    map[string]count
	Models   []Model
	Notes    []string
	Findings []string // what an archive's reader has to say
	err      error    // why it was not looked into
	layout   string   // of a safetensors file: see layoutOf
}

// Describe finds out what the weights are, from members below model/ whose names
// tell a format. Of a safetensors file all tensors count, unless it is a
// copy of what is counted already (see copies); of a PT2 archive the parameters, or all weights where it calls none a parameter. What several names
// or models of an archive share counts once: what begins at the same element of the
// same storage, of several views the largest.
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
		members = slices.DeleteFunc(slices.Clone(members), func(m carton.Member) bool { return !strings.HasPrefix(m.Path, "model/") })
	}
	all := filesOf(members)
	formats := map[string]int64{}
	for _, f := range all {
		formats[f.format] = add(formats[f.format], max(f.Size, 0))
	}
	files := readable(all)
	facts := make([]fileFacts, len(files))
	err := scan(ctx, files, opts, func(ctx context.Context, i int, s *share) (err error) {
		facts[i], err = factsOf(ctx, src, files[i], opts, s)
		return err
	})
	if err != nil {
		return nil, err
	}
	sets, notes, err := shardSets(ctx, src, members, opts)
	if err != nil {
		return nil, err
	}
	for hash := range copies(members, files, facts, sets) {
		facts[slices.IndexFunc(files, func(f file) bool { return f.Hash == hash })].Types = nil
	}
	out := sum(files, facts)
	out.Notes = append(out.Notes, notes...)
	out.Formats = byBytes(formats)
	if len(out.Formats) > 0 {
		out.Format = out.Formats[0].Name
	}
	return out, nil
}

// sum adds the facts of files up.
func sum(files []file, facts []fileFacts) *Facts {
	out := &Facts{}
	bytes := map[string]int64{}
	for i, f := range facts {
		for dtype, n := range f.Types {
			name := precisionOf(dtype)
			bytes[name] = add(bytes[name], n.Bytes)
			out.Parameters = add(out.Parameters, n.Elements)
		}
		for _, m := range f.Models {
			m.Member = files[i].Path
			out.Models = append(out.Models, m)
		}
		for _, text := range f.Notes {
			out.Notes = append(out.Notes, Note{Member: files[i].Path, Text: text, Err: f.err})
		}
		for _, text := range f.Findings {
			out.Findings = append(out.Findings, Note{Member: files[i].Path, Text: text})
		}
	}
	out.Precisions = byBytes(bytes)
	var names []string
	for _, p := range out.Precisions {
		names = append(names, p.Name)
	}
	out.Precision = strings.Join(names, ",")
	if len(names) == 0 {
		out.Parameters = -1
	}
	return out
}

// add adds counts. A place may lie about sizes, and a header with it: a sum that
// no model can have stays the largest that there is.
func add(a, b int64) int64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxInt64
}

// precisionOf returns ModelPack's name for a type; one that it has none for is its
// own name in lower case.
func precisionOf(name string) string {
	if t := dtype.Named(name); t != nil {
		return t.ModelPack
	}
	return byname.LowerASCII(name)
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

// factsOf counts one file's tensors.
func factsOf(ctx context.Context, src carton.Source, f file, opts Options, s *share) (fileFacts, error) {
	if skipped(f, opts) {
		return fileFacts{Notes: []string{noteSkipped}, err: errSkipped}, nil
	}
	c, err := look(ctx, src, f, opts, s)
	if err != nil {
		return fileFacts{}, err
	}
	facts := fileFacts{Types: countTypes(c.tensors), Models: c.models, Notes: c.notes, Findings: c.findings, err: c.err}
	if f.format == byname.Safetensors {
		facts.layout = layoutOf(c.tensors)
	}
	return facts, nil
}

// countTypes counts a file's tensors by type.
func countTypes(tensors []Tensor) map[string]count {
	types := map[string]count{}
	counted(tensors, func(t *Tensor) {
		n := types[t.DType]
		n.Elements, n.Bytes = add(n.Elements, t.Elements()), add(n.Bytes, t.Bytes)
		types[t.DType] = n
	})
	return types
}
