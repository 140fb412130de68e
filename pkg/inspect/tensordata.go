package inspect

import (
	"context"
	"fmt"
	"strings"

	"github.com/carton-oci/carton-oci/internal/dtype"
	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
)

// dataTensors returns the tensors that tensor_data/index.toml lists, in its
// order. An index that is broken is a note.
func dataTensors(ctx context.Context, src carton.Source, members []carton.Member) ([]Tensor, []Note, error) {
	if _, ok := src.Manifest().Lookup(carton.IndexName); !ok {
		return nil, nil, nil
	}
	b, err := carton.ReadMember(ctx, src, carton.IndexName, carton.MaxIndexBytes)
	if err != nil {
		return nil, nil, err
	}
	index, err := carton.ParseTensorIndex(b)
	if err != nil {
		// The error begins with the path, as the note does.
		text := strings.TrimPrefix(err.Error(), carton.IndexName+": ")
		return nil, []Note{{Member: carton.IndexName, Text: text, Err: err}}, nil
	}
	byPath := map[string]carton.Member{}
	for _, m := range members {
		byPath[m.Path] = m
	}
	var tensors []Tensor
	var notes []Note
	for _, t := range index.Tensors {
		out := Tensor{
			Tensor: modelfile.Tensor{Name: t.Name, DType: typeOf(t.DType), Shape: t.Shape}, Member: t.Path(),
			Inner: t.Inner,
		}
		if t.DType == carton.Nested {
			out.Member = carton.IndexName
			tensors = append(tensors, out)
			continue
		}
		m, ok := byPath[t.Path()]
		if !ok {
			notes = append(notes, dataNote(carton.IndexName, "names %s, which the carton does not hold",
				errtext.Quote(t.Path())))
			continue
		}
		out.in = &file{Member: m}
		out.Bytes = t.Elements() * t.DType.Size()
		if t.DType == carton.String {
			out.Bytes = m.Size
		} else if m.Size >= 0 && m.Size != out.Bytes {
			notes = append(notes, dataNote(m.Path, "has %d bytes, its shape and type need %d", m.Size, out.Bytes))
			continue
		}
		tensors = append(tensors, out)
	}
	return tensors, notes, nil
}

// typeOf returns the name of a type of tensor_data as safetensors has it. Strings
// and nested tensors it does not have: they are called as the carton calls them.
func typeOf(d carton.DType) string {
	if t := dtype.Find(func(t *dtype.Type) bool { return t.Carton == string(d) }); t != nil {
		return t.Name
	}
	return string(d)
}

// dataNote is the note for a tensor that is not listed because its file is wrong.
func dataNote(member, format string, args ...any) Note {
	text := fmt.Sprintf(format, args...)
	return Note{Member: member, Text: text, Err: &carton.Error{Path: member, Kind: carton.ErrFormat, Msg: text}}
}
