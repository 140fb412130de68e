// Package modelfile is what the readers of model files have in common: a format
// and what its files say of themselves.
//
// A format that is looked into is a package below this one with a [Format], and a
// line of the table in pkg/modelfile/formats. Which files are of the format is said
// by their names: the table of internal/filekind.
package modelfile

import (
	"io"
	"slices"
)

// Format reads files of one format: ReadHeader those that say at their beginning
// what is in them, ReadArchive those with a directory at their end. One of the two
// is nil. Errors are about the content, or those of r.
type Format struct {
	// Name is the format's, as internal/filekind has it.
	Name string
	// ReadHeader reads a file from its beginning, and as little more than its header
	// as can be. size is the file's, in bytes, -1 where it is not known.
	ReadHeader func(r io.Reader, size int64) (*Content, error)
	// HeaderBytes returns where the header of a file ends that begins with these
	// eight bytes. It is nil where only reading it tells.
	HeaderBytes func(first [8]byte) int64
	// ReadArchive reads a file of size bytes from its end.
	ReadArchive func(r io.ReaderAt, size int64) (*Content, error)
}

// Content is what a file says of itself.
type Content struct {
	// Tensors are in the order of their bytes, or that of a file's own documents.
	Tensors []Tensor
	// Models are the models of a file that holds several by name, or the one that a
	// file's header describes.
	Models []Model
	// Part says which part of a model the file is, nil where it is not one of several.
	Part *Part
	// Notes say what is unusual about the file, Findings what looks wrong or was not
	// checked: a clause each, whose subject is the file.
	Notes, Findings []string
}

// Part is one of the files of a split model.
type Part struct {
	Number, Of int // from 1
	// Tensors is how many all parts hold together, -1 where the file doesn't say.
	Tensors int64
}

// Model is one of a file's models.
type Model struct {
	Name string
	About
	// Torch is the version of torch that exported it, "" where it is not known.
	Torch string
	// Tensors is how many weights there are, Parameters how many elements those have
	// that [Counted] visits; -1 where their types are not known.
	Tensors    int
	Parameters int64
	// Backends are those that it was compiled for.
	Backends []Backend
}

// About is what a file's header says of its model, as the author has it. What it
// does not say is "", 0 or false.
type About struct {
	Architecture string // "llama"
	// Quantization is how most of the weights are stored: "Q4_K_M".
	Quantization string
	Context      int64 // the longest text that it was trained for, in tokens
	License      string
	Description  string
	Homepage     string   // a URL
	BaseModels   []string // what it was made of: URLs
	ChatTemplate bool
	// Parts is of how many files the model is, 0 for one.
	Parts int
}

// Backend is one compiled form of a model.
type Backend struct {
	Name   string `json:"backend"`          // "" where it has none
	Device string `json:"device,omitempty"` // "cpu"; "" where it is not known
}

// Tensor is one tensor of a file.
type Tensor struct {
	Name string
	// DType is the type of the elements as safetensors names it, or as the format
	// does, where safetensors does not have it; "" where it is not known.
	DType string
	// Shape has a length a dimension, none for a scalar; it is nil where there is
	// none.
	Shape []int64
	// Bytes is the size of the elements, C order and without gaps, in bytes; -1 where
	// that is not known.
	Bytes int64
	// Model is the name of the model that the tensor is of, in a file of several.
	Model string
	// Param says that the file calls the tensor a parameter of the model, not a
	// buffer or a constant; Constant that it is no weight at all.
	Param, Constant bool
	// Offset is where in the file the elements lie as they are, Bytes long. Where View
	// is not nil, that says where they are.
	Offset int64
	View   View
}

// View is a tensor that is part of a storage: several may view the same, in another
// order or with gaps.
type View interface {
	// Storage is where the tensor begins. Those that begin in the same place share
	// their elements.
	Storage() Storage
	// Strides are how far in the storage the elements of each dimension are apart.
	Strides() []int64
	// Unreadable says why Read can't give the elements, as in "is pickled"; "" where
	// it can.
	Unreadable() string
	// Span is which bytes of the file Read needs; Plain reports whether they are the
	// elements as they are.
	Span() (off, n int64)
	Plain() bool
	// Read gives the elements in C order, little-endian. r is the file.
	Read(r io.ReaderAt) (io.Reader, error)
}

// Storage is a place in a file where a tensor begins.
type Storage struct {
	File   string // of the archive
	Name   string // of a tensor that nobody knows the place of
	Offset int64  // in elements
}

// Elements returns how many elements the tensor has.
func (t *Tensor) Elements() int64 {
	if t.Shape == nil {
		return 0
	}
	n := int64(1)
	for _, d := range t.Shape {
		n *= d // whoever made the tensor has checked that it fits
	}
	return n
}

// Counted visits the tensors that make a file's parameters, each once: all, or of
// those that are views the parameters, or all weights where the file calls none a
// parameter. What begins in the same place is one tensor, of several views (a
// matrix, and that matrix turned) the first of the largest.
func Counted(tensors []Tensor, visit func(*Tensor)) {
	params := slices.ContainsFunc(tensors, func(t Tensor) bool { return t.Param })
	largest := map[Storage]int{}
	for i := range tensors {
		t := &tensors[i]
		if t.View == nil {
			visit(t)
			continue
		}
		if t.Constant || t.Bytes < 0 || t.Param != params {
			continue
		}
		key := t.View.Storage()
		if j, seen := largest[key]; !seen || t.Bytes > tensors[j].Bytes {
			largest[key] = i
		}
	}
	for _, i := range largest {
		visit(&tensors[i])
	}
}

// Add adds counts. A file may lie about sizes: a sum that no model can have stays
// the largest that there is.
func Add(a, b int64) int64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return 1<<63 - 1
}
