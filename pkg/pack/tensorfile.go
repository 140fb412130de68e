package pack

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/dtype"
	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/localfile"
	"github.com/carton-oci/carton-oci/internal/npy"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/modelfile/safetensors"
)

// MaxReorderedBytes is the most bytes that all .npy files in Fortran order or
// big-endian may have together: they are held in memory to be put in order.
const MaxReorderedBytes = 64 << 20

// dataTensor is a tensor of a file that was given, on its way to tensor_data/.
type dataTensor struct {
	name  string // in the file; "" of a .npy
	dtype carton.DType
	shape []int64
	file  *file // its content, without a path yet
}

// openTensors reads which tensors a file holds: of a .npy one, of a .safetensors
// all, by name.
func (p *packer) openTensors(name string) ([]dataTensor, error) {
	ext := strings.ToLower(filepath.Ext(name))
	if ext != ".npy" && ext != ".safetensors" {
		return nil, optionsf("%s: want a .npy or .safetensors file", errtext.Quote(name))
	}
	root, base, err := p.openAround(name)
	if err != nil {
		return nil, err
	}
	f, err := localfile.OpenIn(root, base)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := &file{root: root, name: base, size: info.Size(), part: true}
	if ext == ".npy" {
		return p.readNPY(name, f, from)
	}
	return readSafetensors(name, f, from)
}

func readSafetensors(name string, f *os.File, from *file) ([]dataTensor, error) {
	h, err := safetensors.ReadHeader(f, from.size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", errtext.Quote(name), err)
	}
	var tensors []dataTensor
	for _, t := range h.Tensors {
		dtype, err := cartonType(name, t.DType)
		if err != nil {
			return nil, err
		}
		one := *from
		one.off, one.size = h.DataStart+t.Begin, t.End-t.Begin
		tensors = append(tensors, dataTensor{name: t.Name, dtype: dtype, shape: t.Shape, file: &one})
	}
	slices.SortFunc(tensors, func(a, b dataTensor) int { return strings.Compare(a.name, b.name) })
	return tensors, nil
}

func (p *packer) readNPY(name string, f *os.File, from *file) ([]dataTensor, error) {
	h, err := npy.ReadHeader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", errtext.Quote(name), err)
	}
	dtype, err := cartonType(name, h.DType)
	if err != nil {
		return nil, err
	}
	if got := from.size - h.DataStart; got != h.Bytes() {
		return nil, &carton.Error{
			Path: name, Kind: carton.ErrFormat,
			Msg: fmt.Sprintf("has %d bytes of elements, want %d", got, h.Bytes()),
		}
	}
	t := dataTensor{dtype: dtype, shape: slices.Clone(h.Shape), file: from}
	from.off, from.size = h.DataStart, h.Bytes()
	if !h.BigEndian && (!h.Fortran || len(h.Shape) < 2) {
		return []dataTensor{t}, nil
	}
	if p.reordered += h.Bytes(); p.reordered > MaxReorderedBytes {
		err := &carton.Error{
			Path: name, Kind: carton.ErrLimit,
			Msg: fmt.Sprintf("arrays in Fortran order or big-endian have %d bytes together with it, want at most %d",
				p.reordered, MaxReorderedBytes),
		}
		return nil, hint.With(err, "save it in C order, little-endian: numpy.ascontiguousarray")
	}
	raw := make([]byte, h.Bytes())
	_, err = io.ReadFull(io.NewSectionReader(f, h.DataStart, h.Bytes()), raw)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = changed(name, "has shrunk")
	}
	if err != nil {
		return nil, err
	}
	t.file = &file{text: inOrder(raw, h, int(dtype.Size())), size: h.Bytes()}
	return []dataTensor{t}, nil
}

// inOrder puts elements into C order, little-endian.
func inOrder(raw []byte, h *npy.Header, size int) []byte {
	out := make([]byte, 0, len(raw))
	stride := make([]int, len(h.Shape)) // in elements, of the file
	for i, n := 0, 1; i < len(h.Shape); i++ {
		at := i
		if !h.Fortran {
			at = len(h.Shape) - 1 - i
		}
		stride[at] = n
		n *= int(h.Shape[at])
	}
	index := make([]int64, len(h.Shape))
	for at := 0; len(out) < len(raw); {
		element := raw[at*size : (at+1)*size]
		out = append(out, element...)
		if h.BigEndian {
			slices.Reverse(out[len(out)-size:])
		}
		for d := len(index) - 1; d >= 0; d-- {
			index[d]++
			at += stride[d]
			if index[d] < h.Shape[d] {
				break
			}
			at -= stride[d] * int(h.Shape[d])
			index[d] = 0
		}
	}
	return out
}

// cartonType returns the type of tensor_data/ for one of safetensors.
func cartonType(file, name string) (carton.DType, error) {
	known := dtype.Named(name)
	if known == nil || known.Carton == "" {
		return "", &carton.Error{
			Path: file, Kind: carton.ErrFormat,
			Msg: fmt.Sprintf("got elements of the type %s, want float32, float64, int8 to int64 or uint8 to uint64",
				errtext.Quote(name)),
		}
	}
	return carton.DType(known.Carton), nil
}
