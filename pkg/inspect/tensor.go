package inspect

import (
	"github.com/carton-oci/carton-oci/pkg/modelfile"
)

// Tensor is one tensor of one member. DType may also be "string" or "nested", of
// tensor_data; then Bytes is the size of the file that holds the strings, and 0 of
// a nested tensor.
type Tensor struct {
	modelfile.Tensor
	// Member is the path of the member that the tensor is in.
	Member string
	// Inner names the tensors that a nested one is made of.
	Inner []string

	in *file // what has no format is of tensor_data
}

// Note says what could not be read, or does not agree, in a member.
type Note struct {
	Member string `json:"member"`
	Text   string `json:"text"` // "breaks the safetensors format: …"
	// Err is why the member was not looked into, and what it holds is missing from
	// what was found: it wraps carton.ErrFormat where the member is broken, and
	// carton.ErrLink where no URL gave it. nil where nothing is missing.
	Err error `json:"-"`
}

// Options say what is looked at. The zero value is useful.
type Options struct {
	// Member is the one member to look into; "" is all of them.
	Member string
	// Model is the one model of PT2 archives to look at; "" is all of them.
	Model string
	// Concurrency is how many headers are read at once; 0 is 8.
	Concurrency int
	// Local makes a note of a linked member that no URL gave, where it is an error
	// else: what is at hand is described all the same.
	Local bool
	// Anywhere describes all members, of a model that is no carton and so has no
	// model/.
	Anywhere bool
	// Through reads PT2 archives also in members where ranges are expensive, which
	// costs two passes or more over each.
	Through bool
	// Loose says to [Diff] that A or B is no carton: what a carton has and files
	// don't, carton.toml and tensor_data/index.toml, is not compared with nothing,
	// and where both are one file, the names don't matter.
	Loose bool
}
