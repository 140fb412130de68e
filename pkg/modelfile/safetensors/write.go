package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/carton-oci/carton-oci/internal/dtype"
	"github.com/carton-oci/carton-oci/internal/jsonstream"
)

// WriteHeader writes what stands before the elements of these tensors in a file of
// them: of each the name, the type and the shape; where its elements belong is what
// [ReadHeader] then says. The same tensors make the same header, whatever their
// order: sorted as the reference implementation sorts them, larger elements first
// and then by name, so that every tensor is aligned to its elements; metadata,
// which may be nil, sorted by key; padded with spaces so that the elements begin at
// a multiple of 8. Nothing is written that ReadHeader would refuse: that is
// ErrFormat.
func WriteHeader(w io.Writer, metadata map[string]string, tensors []Tensor) error {
	sorted := slices.SortedStableFunc(slices.Values(tensors), func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(dtype.Rank(b.DType), dtype.Rank(a.DType)), cmp.Compare(a.Name, b.Name))
	})
	header, err := marshalHeader(metadata, sorted)
	if err != nil {
		return err
	}
	_, err = w.Write(header)
	return err
}

// marshalHeader returns the length and the header. It is read back, so that all
// that is refused there is refused here.
func marshalHeader(metadata map[string]string, tensors []Tensor) ([]byte, error) {
	b := bytes.NewBuffer(make([]byte, 8))
	b.WriteByte('{')
	if metadata != nil {
		b.WriteString(`"__metadata__":{`)
		for i, key := range slices.Sorted(maps.Keys(metadata)) {
			if !utf8.ValidString(key) || !utf8.ValidString(metadata[key]) {
				return nil, fmt.Errorf("%w: metadata %s: is not UTF-8", ErrFormat, quote(key))
			}
			comma(b, i)
			writeString(b, key)
			b.WriteByte(':')
			writeString(b, metadata[key])
		}
		b.WriteByte('}')
	}
	at := int64(0)
	for i := range tensors {
		if i > 0 || metadata != nil {
			b.WriteByte(',')
		}
		n, err := marshalTensor(b, &tensors[i], at)
		if err != nil {
			return nil, fmt.Errorf("%w: tensor %s: %w", ErrFormat, quote(tensors[i].Name), err)
		}
		at += n
	}
	b.WriteByte('}')
	b.Write(bytes.Repeat([]byte(" "), -b.Len()&7))
	out := b.Bytes()
	binary.LittleEndian.PutUint64(out, uint64(len(out)-8))
	_, err := ReadHeader(bytes.NewReader(out), -1)
	return out, err
}

// marshalTensor writes the entry of a tensor whose bytes begin at at, and returns
// how many it has.
func marshalTensor(b *bytes.Buffer, t *Tensor, at int64) (int64, error) {
	switch {
	case t.Name == "__metadata__":
		return 0, errors.New("no tensor can have this name")
	case !utf8.ValidString(t.Name):
		return 0, errors.New("name is not UTF-8")
	case !HasType(t.DType):
		return 0, fmt.Errorf("dtype: got %s, which the format does not have", quote(t.DType))
	case slices.ContainsFunc(t.Shape, func(d int64) bool { return d < 0 }):
		return 0, fmt.Errorf("has the shape %v", t.Shape)
	}
	n, err := span(t)
	if err == nil && n > maxEnd-at {
		err = errors.New("its shape is too large for any file")
	}
	if err != nil {
		return 0, err
	}
	writeString(b, t.Name)
	fmt.Fprintf(b, `:{"dtype":"%s","shape":[`, t.DType)
	for i, d := range t.Shape {
		comma(b, i)
		fmt.Fprint(b, d)
	}
	fmt.Fprintf(b, `],"data_offsets":[%d,%d]}`, at, at+n)
	return n, nil
}

// comma separates the items of a list.
func comma(b *bytes.Buffer, i int) {
	if i > 0 {
		b.WriteByte(',')
	}
}

// writeString writes JSON as the reference implementation does: what need not be
// escaped is not. s is UTF-8.
func writeString(b *bytes.Buffer, s string) {
	quoted, _ := jsonstream.Marshal(s, "") // a string always can be
	b.Write(quoted)
}
