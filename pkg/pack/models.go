package pack

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"

	"github.com/carton-oci/carton-oci/internal/dtype"
	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/filekind"
	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/internal/zipdir"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
	"github.com/carton-oci/carton-oci/pkg/modelfile/formats"
	"github.com/carton-oci/carton-oci/pkg/modelfile/gguf"
	"github.com/carton-oci/carton-oci/pkg/modelfile/pt2"
	"github.com/carton-oci/carton-oci/pkg/modelfile/safetensors"
)

// rename gives a file that is packed alone the name that its runner looks for.
func (p *packer) rename(f *file) error {
	r, err := f.open()
	if err != nil {
		return err
	}
	defer r.Close()
	switch ext := strings.ToLower(path.Ext(f.name)); {
	case ext == ".wasm" && (p.opts.Runner.Name == "" || p.opts.Runner.Name == wasmRunner):
		f.path = modelFolder + "model.wasm"
		return p.readWasm(f, r)
	case ext != ".pt" && ext != ".pth" && p.opts.Runner.Name != torchscriptRunner:
		return nil
	case isTorchScript(r, f.size):
		p.take(&p.opts.Runner.Name, "runner.runner_name", torchscriptRunner, f.name+", a TorchScript archive")
	case p.opts.Runner.Name == torchscriptRunner:
		p.warnf("%s is not a TorchScript archive, which is what the runner %s loads",
			errtext.Quote(f.name), torchscriptRunner)
	}
	if p.opts.Runner.Name == torchscriptRunner {
		f.path = modelFolder + "model.pt"
	}
	return nil
}

// keepsInfo reports whether carton.toml is given.
func (p *packer) keepsInfo() bool { return p.given != nil || p.opts.InfoFile != "" }

// wasmMagic begins every WebAssembly module.
const wasmMagic = "\x00asm"

// readWasm tells what a WebAssembly module is by its first eight bytes: a magic
// number and a version, of which components have their own.
// https://github.com/WebAssembly/component-model/blob/main/design/mvp/Binary.md
func (p *packer) readWasm(f *file, r io.ReaderAt) error {
	head := make([]byte, 8)
	n, err := r.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if n < len(head) || !bytes.HasPrefix(head, []byte(wasmMagic)) {
		p.warnf("%s is not a WebAssembly module", errtext.Quote(f.name))
		return nil
	}
	p.take(&p.opts.Runner.Name, "runner.runner_name", wasmRunner, f.name+", a WebAssembly module")
	if head[6] == 0 { // the layer: 0 is a core module, 1 a component
		p.warnf("%s is a core module; the runner %s loads components", errtext.Quote(f.name), wasmRunner)
	}
	return nil
}

// isTorchScript reports whether a file is a zip as torch.jit.save writes it: with
// a root folder that holds the archive's constants and its code.
func isTorchScript(r io.ReaderAt, size int64) bool {
	dir, err := zipdir.Read(r, size, zipdir.Options{MaxEntries: 100_000, MaxDirectoryBytes: 16 << 20})
	if err != nil {
		return false
	}
	var constants, code bool
	for _, e := range dir.Files {
		_, name, _ := strings.Cut(e.Name, "/")
		constants = constants || name == "constants.pkl"
		code = code || strings.HasPrefix(name, "code/")
	}
	return constants && code
}

// readFiles looks into the files whose names say that they can be looked into:
// safetensors headers, and a PT2 archive, if it is the only one.
func (p *packer) readFiles() error {
	var archives []*file
	for _, f := range p.files {
		if !strings.HasPrefix(f.path, modelFolder) {
			continue
		}
		// A symlink may have the name that says what its target is, as in a hub's cache.
		end := p.final(f)
		if end.generated() || end != f && formatOf(end.path) == formatOf(f.path) {
			continue // generated, or read by its own name
		}
		if err := p.readFile(f.path, end); err != nil {
			return err
		}
		if f.target == "" && formatOf(f.path) == filekind.PT2 {
			archives = append(archives, f)
		}
	}
	if err := p.checkParts(); err != nil {
		return err
	}
	if len(archives) == 0 {
		return nil
	}
	if len(archives) > 1 {
		p.warnf("%d PT2 archives are packed: what they say of inputs and versions is not taken from any", len(archives))
		return nil
	}
	return p.readPT2(archives[0])
}

// formatOf returns as what a file is looked into, by its name: a format, or the end
// of an index; "" for any other.
func formatOf(name string) string {
	if _, end := filekind.IndexOf(name); end != "" {
		return end
	}
	if format := formats.Of(path.Base(name)); format != nil {
		return format.Name
	}
	return ""
}

// maxPointerBytes is the largest pointer of git-lfs.
const maxPointerBytes = 1024

// readFile refuses pointers, weights that are no such, and indexes of shards that
// are not there. name is what the file is called, which f or a symlink to it is.
func (p *packer) readFile(name string, f *file) error {
	format := formats.Of(path.Base(name))
	header := format != nil && format.ReadHeader != nil
	_, index := filekind.IndexOf(name)
	if !header && index == "" && f.size > maxPointerBytes {
		return nil
	}
	r, err := f.open()
	if err != nil {
		return err
	}
	defer r.Close()
	if err := modelfile.CheckPointer(nil, io.NewSectionReader(r, 0, f.size)); err != nil {
		return p.broken(name, carton.ErrFormat, err)
	}
	switch {
	case index != "":
		return p.readShardIndex(name, r)
	case !header:
		return nil
	}
	source := &iox.Source{R: r}
	in, err := format.ReadHeader(source, f.size)
	switch {
	case source.Err != nil:
		return fmt.Errorf("%s: %w", errtext.Quote(name), source.Err)
	case errtext.IsLimit(err), errors.Is(err, gguf.ErrVersion): // not its author's fault
		p.warnf("%s: %v", errtext.Quote(name), err)
	case err != nil:
		return p.broken(name, carton.ErrFormat, err)
	default:
		p.said = append(p.said, said{name, in.Models, in.Part, len(in.Tensors)})
	}
	return nil
}

// readShardIndex refuses a model that lacks shards which its index lists: whoever
// loads it is told so only after it was fetched.
func (p *packer) readShardIndex(name string, r io.Reader) error {
	index, err := safetensors.ReadIndex(r)
	switch {
	case errors.Is(err, safetensors.ErrFormat):
		p.warnf("%s: %v", errtext.Quote(name), err) // perhaps it is another program's
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", errtext.Quote(name), err)
	}
	var missing []string
	shards := index.Shards()
	for _, shard := range shards {
		if p.find(path.Join(path.Dir(name), shard)) == nil {
			missing = append(missing, errtext.Quote(shard))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	err = fmt.Errorf("missing are %d of the %d shards that it lists: %s", len(missing), len(shards),
		firstOf(missing, 3))
	return p.broken(name, carton.ErrFormat, err)
}

// readPT2 takes from an archive what it says of itself: the version of torch,
// and what goes in and comes out.
func (p *packer) readPT2(f *file) error {
	r, err := f.open()
	if err != nil {
		return err
	}
	defer r.Close()
	a, err := pt2.Open(r, f.size)
	switch {
	case errors.Is(err, pt2.ErrFormat), errors.Is(err, pt2.ErrNotPT2), errors.Is(err, pt2.ErrVersion):
		return p.broken(f.path, carton.ErrFormat, err)
	case err != nil:
		return fmt.Errorf("%s: %w", errtext.Quote(f.path), err)
	}
	for _, text := range a.Findings {
		p.warnf("%s: %s", errtext.Quote(f.path), text)
	}
	if p.keepsInfo() {
		return nil
	}
	p.fillPlatforms(a, f.name)
	if v := torchRelease.FindString(a.TorchVersion); v != "" && !otherFramework(p.opts.Runner.Name) {
		from := "torch_version of " + f.name + ", " + a.TorchVersion
		p.take(&p.opts.Runner.RequiredFrameworkVersion, "runner.required_framework_version", "="+v, from)
	}
	if len(p.opts.Inputs)+len(p.opts.Outputs) > 0 || len(a.Models) == 0 {
		return nil
	}
	if len(a.Models) > 1 {
		p.warnf("%s holds %d models: inputs and outputs are not taken from any", errtext.Quote(f.name), len(a.Models))
		return nil
	}
	m := a.Models[0]
	symbols := symbolsOf(m.Inputs)
	inputs, why := specsOf(m.Inputs, symbols)
	outputs, whyOut := specsOf(m.Outputs, symbols)
	if why == "" {
		why = whyOut
	}
	switch {
	case why != "":
		p.warnf("%s: inputs and outputs are not declared: %s", errtext.Quote(f.name), why)
	case len(inputs)+len(outputs) > 0:
		p.declare(inputs, outputs, "the model definition in "+f.name)
	}
	return nil
}

// torchRelease is the part of torch's version that a version requirement can
// name: "2.9.1" of "2.9.1+cpu" and of "2.9.1a0+git0123".
var torchRelease = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+`)

// otherFramework reports whether the runner's framework is known, and not torch.
func otherFramework(runner string) bool {
	return runner == noopRunner || runner == pythonRunner || runner == wasmRunner || runner == rustBertRunner
}

// declare takes inputs and outputs that a file tells.
func (p *packer) declare(inputs, outputs []carton.TensorSpec, from string) {
	p.opts.Inputs, p.opts.Outputs = inputs, outputs
	for _, s := range inputs {
		p.fill("input", s.Name+" "+string(s.DType)+" "+s.Shape.String(), from)
	}
	for _, s := range outputs {
		p.fill("output", s.Name+" "+string(s.DType)+" "+s.Shape.String(), from)
	}
}

// symbolName is what a dimension is called that is one symbol. Any other is an
// expression, which carton.toml does not have.
var symbolName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// symbolsOf returns the symbols that are dimensions of inputs, which give them
// their values.
func symbolsOf(inputs []pt2.Value) map[string]bool {
	symbols := map[string]bool{}
	for _, v := range inputs {
		for _, d := range v.Shape {
			if symbolName.MatchString(d.Symbol) {
				symbols[d.Symbol] = true
			}
		}
	}
	return symbols
}

// specsOf declares a model's values. A dimension that is none of the symbols may
// have any length: an expression, or what is known only after the model ran. Where one of them can't be declared, none
// is, as the format wants all or none; why says which and why.
func specsOf(values []pt2.Value, symbols map[string]bool) (specs []carton.TensorSpec, why string) {
	seen := map[string]bool{}
	for _, v := range values {
		known := dtype.Named(v.DType)
		switch {
		case v.Kind != "tensor":
			return nil, fmt.Sprintf("%s is no tensor, but %s", errtext.Quote(v.Name), v.Kind)
		case known == nil || known.Carton == "":
			return nil, fmt.Sprintf("%s is of the type %s, which carton.toml does not have",
				errtext.Quote(v.Name), errtext.Quote(v.DType))
		case v.Name == "" || seen[v.Name]:
			return nil, fmt.Sprintf("the name %s is empty, or is that of two", errtext.Quote(v.Name))
		}
		seen[v.Name] = true
		shape := carton.Shape{Dims: []carton.Dim{}}
		for _, d := range v.Shape {
			dim := carton.Dim{Size: max(d.Size, 0), Symbol: d.Symbol}
			if d.Size < 0 && !symbols[d.Symbol] {
				dim.Symbol = "*"
			}
			shape.Dims = append(shape.Dims, dim)
		}
		specs = append(specs, carton.TensorSpec{Name: v.Name, DType: carton.DType(known.Carton), Shape: shape})
	}
	return specs, ""
}
