package inspect

import (
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// Tensor is one tensor of one member.
type Tensor struct {
	Name string
	// DType is the type of the elements as safetensors names it, or "string" or
	// "nested" of tensor_data.
	DType string
	// Shape has a length a dimension, none for a scalar; it is nil where DType is
	// "nested".
	Shape []int64
	// Bytes is the size of the elements, C order and without gaps, in bytes; of
	// strings the size of the file that holds them, -1 where that is not known;
	// 0 of a nested tensor.
	Bytes int64
	// Member is the path of the member that the tensor is in.
	Member string
	// Model is the name of a PT2 archive's model; "" elsewhere.
	Model string
	// Param says that a PT2 archive calls the tensor a parameter of the model, not
	// a buffer or a constant.
	Param bool
	// Inner names the tensors that a nested one is made of.
	Inner []string

	at location
}

// alone returns a copy that does not keep other tensors in memory; nil of nil.
func (t *Tensor) alone() *Tensor {
	if t == nil {
		return nil
	}
	u := *t
	if p := t.at.packed; p != nil {
		packed := *p.Tensor
		u.at.packed = &packedTensor{&packed, p.constant}
	}
	return &u
}

// location says where a tensor's elements are.
type location struct {
	member *carton.Member
	kind   kind
	header int64 // of safetensors: where the data begins, in the member
	begin  int64 // of safetensors: from there
	packed *packedTensor
}

// kind says what sort of file holds a tensor.
type kind int

const (
	kindSafetensors kind = iota
	kindPT2
	kindData // of tensor_data
)

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
	// Through reads PT2 archives also in members where ranges are dear, which
	// costs two passes or more over each.
	Through bool
}
