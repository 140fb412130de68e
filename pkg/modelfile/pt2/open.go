package pt2

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// Open reads what an archive of size bytes says of itself. Of r it reads the
// last 96 KiB at once, and then the documents that lie before that, neighbours
// together. Errors of content wrap ErrFormat, ErrNotPT2 or ErrVersion; any other
// is of r.
func Open(r io.ReaderAt, size int64) (*Archive, error) {
	files, err := readZip(r, size)
	if err != nil {
		return nil, err
	}
	o := &opener{
		files: files, a: &Archive{}, models: map[string]*Model{}, targets: map[string][]string{},
		found: map[[2]string]bool{},
		blobs: map[string]bool{},
	}
	if err := o.layout(); err != nil {
		return nil, err
	}
	files.prefetch()
	for _, step := range []func() error{o.headers, o.list, o.exported, o.oldLayout, o.compiled} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	o.checkSamples()
	o.finish()
	o.complete()
	return o.a, nil
}

// opener fills an Archive.
type opener struct {
	files *zipFiles
	root  string // the root folder, "" where there is none
	// old says that the archive has the layout of torch.export.save up to 2.7.
	old       bool
	bigEndian bool
	names     []string // of all files, without the root folder, as they were written
	a         *Archive
	models    map[string]*Model
	targets   map[string][]string // by model, the weights and constants that its definition names
	found     map[[2]string]bool  // weights and constants that are there: the model's name and theirs
	blobs     map[string]bool     // files of weights and constants that a document names
	tensors   int                 // how many were read
}

// layout finds out which layout the archive has.
func (o *opener) layout() error {
	switch {
	case o.files.has("archive_format"):
		return nil
	case o.files.has(oldDefinition):
		o.old = true
		return nil
	}
	root, common := o.files.root()
	switch {
	case !common:
		return hint.With(ErrNotPT2,
			"a PT2 archive has a root folder with archive_format in it, or one of the older layouts")
	case o.files.has(root + "/archive_format"):
	case o.files.has(root+"/data.pkl") && o.files.below(root+"/code/"):
		return fmt.Errorf("%w: is a TorchScript archive, made by torch.jit.save", ErrNotPT2)
	case o.files.has(root + "/data.pkl"):
		return fmt.Errorf("%w: is a file of torch.save, which holds pickles", ErrNotPT2)
	default:
		return fmt.Errorf("%w: %s holds no archive_format", ErrNotPT2, errtext.Quote(root))
	}
	o.root, o.files.prefix = root, root+"/"
	return nil
}

// list lists the files.
func (o *opener) list() error {
	for _, e := range o.files.dir.Files {
		name, ok := strings.CutPrefix(e.Name, o.files.prefix)
		if !ok {
			return fmt.Errorf("%w: %s lies outside the root folder %s",
				ErrFormat, errtext.Quote(e.Name), errtext.Quote(o.root))
		}
		o.names = append(o.names, name)
	}
	return nil
}

// model returns the model of this name, a new one where there is none yet.
func (o *opener) model(name string) *Model {
	m := o.models[name]
	if m == nil {
		m = &Model{Name: name}
		o.models[name] = m
	}
	return m
}

// named returns the names of what lies in a folder as <name><suffix>, sorted.
func (o *opener) named(folder, suffix string) []string {
	var names []string
	for _, name := range o.names {
		name, ok := strings.CutPrefix(name, folder)
		if !ok {
			continue
		}
		if name, ok = strings.CutSuffix(name, suffix); ok && name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// checkSamples finds sample inputs, <m>.pt and <m>_<index>.pt, that are of no model.
func (o *opener) checkSamples() {
	const folder = "data/sample_inputs/"
	for _, name := range o.named(folder, ".pt") {
		known := o.models[name] != nil
		if i := strings.LastIndexByte(name, '_'); !known && i > 0 && isDigits(name[i+1:]) {
			known = o.models[name[:i]] != nil
		}
		if !known {
			o.find("%s.pt belongs to no model", folder+errtext.Quote(name))
		}
	}
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// maxFindings is how many findings are kept.
const maxFindings = 100

// find adds a finding.
func (o *opener) find(format string, args ...any) {
	switch n := len(o.a.Findings); {
	case n < maxFindings:
		o.a.Findings = append(o.a.Findings, fmt.Sprintf(format, args...))
	case n == maxFindings:
		o.a.Findings = append(o.a.Findings, "there is more of this kind")
	}
}

// finish sorts the models.
func (o *opener) finish() {
	for _, m := range o.models {
		slices.SortFunc(m.AOTInductor, func(a, b Package) int { return cmp.Compare(a.Folder, b.Folder) })
		o.a.Models = append(o.a.Models, *m)
	}
	slices.SortFunc(o.a.Models, func(a, b Model) int { return cmp.Compare(a.Name, b.Name) })
	for i := range o.a.Models {
		m := &o.a.Models[i]
		if o.a.TorchVersion == "" {
			o.a.TorchVersion = m.TorchVersion
		}
		if m.TorchVersion != "" && m.TorchVersion != o.a.TorchVersion {
			o.find("model %s was exported by torch %s, another by %s",
				errtext.Quote(m.Name), quote(m.TorchVersion), quote(o.a.TorchVersion))
		}
	}
}

// quote returns a word from outside for an error's text.
func quote(s string) string { return errtext.Short(s) }

// inFile says which file an error is of.
func inFile(name string, err error) error {
	if errors.Is(err, ErrFormat) || errors.Is(err, errSource) {
		return err
	}
	return fmt.Errorf("%w: %s: %w", ErrFormat, errtext.Quote(name), err)
}
