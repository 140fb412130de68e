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
	o := &opener{files: files, a: &Archive{}, models: map[string]*Model{}, targets: map[string][]string{}, blobs: map[string]bool{}}
	if err := o.layout(); err != nil {
		return nil, err
	}
	files.prefetch()
	for _, step := range []func() error{o.headers, o.list, o.exported, o.legacy, o.compiled} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	o.samples()
	o.finish()
	o.complete()
	return o.a, nil
}

// opener fills an Archive.
type opener struct {
	files   *zipFiles
	a       *Archive
	models  map[string]*Model
	targets map[string][]string // by model, the weights and constants that its definition names
	blobs   map[string]bool     // files of weights and constants that a document names
	tensors int                 // how many were read
}

// layout finds out which layout the archive has.
func (o *opener) layout() error {
	switch {
	case o.files.has("archive_format"):
		o.a.Layout = Flat
		return nil
	case o.files.has("serialized_exported_program.json"):
		o.a.Layout = Legacy
		return nil
	}
	root, common := o.files.root()
	switch {
	case !common:
		return hint.With(ErrNotPT2, "a PT2 archive has a root folder with archive_format in it, or one of the older layouts")
	case o.files.has(root + "/archive_format"):
	case o.files.has(root+"/data.pkl") && o.files.below(root+"/code/"):
		return fmt.Errorf("%w: is a TorchScript archive, made by torch.jit.save", ErrNotPT2)
	case o.files.has(root + "/data.pkl"):
		return fmt.Errorf("%w: is a file of torch.save, which holds pickles", ErrNotPT2)
	default:
		return fmt.Errorf("%w: %s holds no archive_format", ErrNotPT2, errtext.Quote(root))
	}
	o.a.Root = root
	o.files.prefix = root + "/"
	o.a.Layout = Export
	if !o.files.below("models/") && o.files.below(aotInductorDir) {
		o.a.Layout = AOTInductor
	}
	return nil
}

// headers reads the files of one word.
func (o *opener) headers() error {
	words := []struct {
		name string
		to   *string
	}{
		{"archive_format", &o.a.Format},
		{"archive_version", &o.a.Version},
		{"byteorder", &o.a.ByteOrder},
		{".data/version", &o.a.ContainerVersion},
		{serializationIDFile, &o.a.SerializationID},
		{"version", &o.a.Version}, // where there is no root folder
	}
	for _, w := range words {
		if *w.to != "" || w.name == "version" && o.a.Root != "" {
			continue
		}
		word, err := o.files.word(w.name)
		if err != nil {
			return err
		}
		*w.to = word
	}
	a := o.a
	switch {
	case a.Layout != Legacy && a.Format != "pt2":
		return fmt.Errorf("%w: archive_format is %s, want pt2", ErrNotPT2, quote(a.Format))
	case a.Root != "" && a.Version != "" && a.Version != "0":
		return fmt.Errorf("%w: archive_version is %s, want 0", ErrVersion, quote(a.Version))
	case a.ContainerVersion != "" && !isDigits(a.ContainerVersion):
		return fmt.Errorf("%w: .data/version is %s, want a number", ErrFormat, quote(a.ContainerVersion))
	case a.ByteOrder == "":
		a.ByteOrder = "little"
	case a.ByteOrder != "little" && a.ByteOrder != "big":
		return fmt.Errorf("%w: byteorder is %s, want little or big", ErrFormat, quote(a.ByteOrder))
	}
	o.checkSerializationID()
	return nil
}

// list lists the files.
func (o *opener) list() error {
	for _, e := range o.files.dir.Files {
		name, ok := strings.CutPrefix(e.Name, o.files.prefix)
		if !ok {
			return fmt.Errorf("%w: %s lies outside the root folder %s", ErrFormat, errtext.Quote(e.Name), errtext.Quote(o.a.Root))
		}
		f := fileOf(name, e)
		o.a.Files = append(o.a.Files, f)
		if strings.HasPrefix(name, "extra/") || o.a.Layout == Legacy && strings.HasPrefix(name, "extra_files/") {
			o.a.Extra = append(o.a.Extra, f)
		}
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
	for _, f := range o.a.Files {
		name, ok := strings.CutPrefix(f.Name, folder)
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

// samples finds the sample inputs of each model: <m>.pt and <m>_<index>.pt.
func (o *opener) samples() {
	const folder = "data/sample_inputs/"
	for _, name := range o.named(folder, ".pt") {
		m := o.models[name]
		if i := strings.LastIndexByte(name, '_'); m == nil && i > 0 && isDigits(name[i+1:]) {
			m = o.models[name[:i]]
		}
		if m == nil {
			o.find("%s.pt belongs to no model", folder+errtext.Quote(name))
			continue
		}
		m.SampleInputs = append(m.SampleInputs, folder+name+".pt")
	}
	if o.a.Layout == Legacy && o.files.has("serialized_example_inputs.pt") {
		m := o.model(legacyModel)
		m.SampleInputs = append(m.SampleInputs, "serialized_example_inputs.pt")
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
			o.find("model %s was exported by torch %s, another by %s", errtext.Quote(m.Name), quote(m.TorchVersion), quote(o.a.TorchVersion))
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
