package pt2

import "errors"

// Limits on what is read.
const (
	// MaxEntries is the most entries that an archive may have.
	MaxEntries = 120_000
	// MaxDirectoryBytes is the largest central directory.
	MaxDirectoryBytes = 24 << 20
	// MaxTensors is the most tensors that all models may have together, several
	// times what the largest models have.
	MaxTensors = 200_000
	// MaxDims is the most dimensions that a tensor may have: torch's limit.
	MaxDims = 64
	// MaxJSONBytes is the most that all JSON documents may have together. They are
	// read piece by piece; the definition of a large model takes some 50 MB.
	MaxJSONBytes = 512 << 20
	// MaxKeptBytes is about how much memory what the documents say may take.
	MaxKeptBytes = 48 << 20
	// MaxRepeated is how many bytes more than its storage's a tensor may have: a
	// stride of 0 repeats elements, and a line of JSON could ask for 2⁶⁰.
	MaxRepeated = 1 << 30
)

// The kinds of fault that an archive can have. Errors of the source itself are
// of no kind.
var (
	// ErrFormat: a broken zip, a broken archive, or one over a limit.
	ErrFormat = errors.New("breaks the PT2 format")
	// ErrNotPT2: a zip, but none of the layouts.
	ErrNotPT2 = errors.New("is not a PT2 archive")
	// ErrVersion: an archive_version that this package does not know.
	ErrVersion = errors.New("is a PT2 archive of an unknown version")
	// ErrUnreadable: the tensor's elements are not raw bytes in the archive.
	ErrUnreadable = errors.New("can't be read from the archive")
)

// Archive is what an archive says of itself.
type Archive struct {
	// TorchVersion is the torch that exported the models, as in "2.9.1+cpu", ""
	// where it is not known. It is the first model's that has one.
	TorchVersion string
	// Models are sorted by name.
	Models []Model
	// Findings say what looks wrong, a sentence each.
	Findings []string
}

// Model is one of an archive's models.
type Model struct {
	Name string
	// TorchVersion and Schema are the model definition's, "" where there is none:
	// the torch that exported it, and the schema's version as in "8.14".
	TorchVersion, Schema string
	// Weights are parameters and buffers, in the order of the definition, Constants
	// tensors that are neither.
	Weights, Constants []Tensor
	// Inputs and Outputs are what a caller gives and gets, in order.
	Inputs, Outputs []Value
	// AOTInductor are the compiled forms, sorted by folder.
	AOTInductor []Package
}

// Package is a model compiled for one backend.
type Package struct {
	// Folder is its folder's name, <m>[-<backend>], of which Backend is the end.
	Folder, Backend string
	// Device is the key AOTI_DEVICE_KEY of Metadata, as in "cpu".
	Device string
	// Metadata is what the compiler wrote into *_metadata.json.
	Metadata map[string]string
	// Weights are pickled, and their types not known.
	Weights []Tensor
}

// Value is an input or output.
type Value struct {
	Name string
	// Kind is "tensor", or what else it is: "int", "float", "bool", "string",
	// "none", "object", "other".
	Kind string
	// DType is that of [Tensor], "" for what is no tensor.
	DType string
	Shape []Dim
}

// Dim is one dimension of a value.
type Dim struct {
	// Size is -1 where the dimension is symbolic.
	Size int64
	// Symbol is the name of a dimension that is one symbol, as in "s77"; of any
	// other the expression as the archive has it: "2*s0" of older torch, newer ones
	// write sympy's "Mul(Integer(2), Symbol('s0', integer=True))". "" where Size is
	// known.
	Symbol string
}
