package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode/utf8"
)

// WriteTensor is a tensor to be written.
type WriteTensor struct {
	Name  string
	DType DType
	// Shape has a length a dimension; none for a scalar.
	Shape []int64
	// Open gives the elements in C order, little-endian. It is called once, when
	// the tensor's turn has come; what it gives is closed where it can be.
	Open func() (io.Reader, error)
}

// Write writes a safetensors file of these tensors. The same tensors make the
// same file, whatever their order: sorted as the reference implementation sorts
// them, larger elements first and then by name, so that every tensor is aligned
// to its elements; metadata, which may be nil, sorted by key; the header padded
// with spaces so that the tensors begin at a multiple of 8. Nothing is written
// that [ReadHeader] would refuse: that is ErrFormat. A tensor whose reader gives
// more or fewer bytes than its shape and type need is an error too, behind what
// was written by then.
func Write(w io.Writer, metadata map[string]string, tensors []WriteTensor) error {
	sorted := inOrder(tensors)
	header, spans, err := marshalHeader(metadata, sorted)
	if err != nil {
		return err
	}
	if _, err := w.Write(header); err != nil {
		return fmt.Errorf("write header: %w", err)
	}
	for i := range sorted {
		if err := copyTensor(w, &sorted[i], spans[i]); err != nil {
			return fmt.Errorf("write tensor %s: %w", quote(sorted[i].Name), err)
		}
	}
	return nil
}

// WriteHeader writes what stands before the tensors in the file that [Write] makes
// of them, for who puts their bytes behind it: where [ReadHeader] then says that
// they are. It calls nobody's Open.
func WriteHeader(w io.Writer, metadata map[string]string, tensors []WriteTensor) error {
	header, _, err := marshalHeader(metadata, inOrder(tensors))
	if err != nil {
		return err
	}
	_, err = w.Write(header)
	return err
}

// inOrder sorts tensors as they are written.
func inOrder(tensors []WriteTensor) []WriteTensor {
	return slices.SortedStableFunc(slices.Values(tensors), func(a, b WriteTensor) int {
		return cmp.Or(cmp.Compare(rank(b.DType), rank(a.DType)), cmp.Compare(a.Name, b.Name))
	})
}

// order is that of the reference implementation's enum of types, in which later
// ones are not smaller.
var order = []DType{
	Bool, F4, F6E2M3, F6E3M2, U8, I8, F8E5M2, F8E4M3, F8E8M0, F8E4M3FNUZ, F8E5M2FNUZ,
	I16, U16, F16, BF16, I32, U32, F32, C64, F64, I64, U64,
}

func rank(d DType) int { return slices.Index(order, d) }

// marshalHeader returns the length and the header, and how many bytes each
// tensor has. The header is read back, so that all that is refused there is
// refused here.
func marshalHeader(metadata map[string]string, tensors []WriteTensor) ([]byte, []int64, error) {
	b := bytes.NewBuffer(make([]byte, 8))
	b.WriteByte('{')
	if metadata != nil {
		b.WriteString(`"__metadata__":{`)
		for i, key := range slices.Sorted(maps.Keys(metadata)) {
			if !utf8.ValidString(key) || !utf8.ValidString(metadata[key]) {
				return nil, nil, fmt.Errorf("%w: metadata %s: is not UTF-8", ErrFormat, quote(key))
			}
			comma(b, i)
			writeString(b, key)
			b.WriteByte(':')
			writeString(b, metadata[key])
		}
		b.WriteByte('}')
	}
	spans := make([]int64, len(tensors))
	at := int64(0)
	for i := range tensors {
		if i > 0 || metadata != nil {
			b.WriteByte(',')
		}
		n, err := marshalTensor(b, &tensors[i], at)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: tensor %s: %w", ErrFormat, quote(tensors[i].Name), err)
		}
		spans[i] = n
		at += n
	}
	b.WriteByte('}')
	b.Write(bytes.Repeat([]byte(" "), -b.Len()&7))
	out := b.Bytes()
	binary.LittleEndian.PutUint64(out, uint64(len(out)-8))
	_, err := ReadHeader(bytes.NewReader(out))
	return out, spans, err
}

// marshalTensor writes the entry of a tensor whose bytes begin at at, and returns
// how many it has.
func marshalTensor(b *bytes.Buffer, t *WriteTensor, at int64) (int64, error) {
	switch {
	case t.Name == "__metadata__":
		return 0, errors.New("no tensor can have this name")
	case !utf8.ValidString(t.Name):
		return 0, errors.New("name is not UTF-8")
	case t.DType.Bits() == 0:
		return 0, fmt.Errorf("dtype: got %s, which the format does not have", quote(string(t.DType)))
	case slices.ContainsFunc(t.Shape, func(d int64) bool { return d < 0 }):
		return 0, fmt.Errorf("has the shape %v", t.Shape)
	}
	n, err := span(&Tensor{DType: t.DType, Shape: t.Shape})
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
	var quoted bytes.Buffer
	e := json.NewEncoder(&quoted)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always can be
	b.Write(bytes.TrimSuffix(quoted.Bytes(), []byte("\n")))
}

// copyTensor writes a tensor of n bytes.
func copyTensor(w io.Writer, t *WriteTensor, n int64) (err error) {
	in, err := t.Open()
	if err != nil {
		return err
	}
	if c, ok := in.(io.Closer); ok {
		defer func() { err = errors.Join(err, c.Close()) }()
	}
	got, err := io.Copy(w, io.LimitReader(in, n))
	if err != nil {
		return err
	}
	if got < n {
		return fmt.Errorf("got %d bytes, its shape and type need %d: %w", got, n, io.ErrUnexpectedEOF)
	}
	var more [1]byte
	switch k, err := io.ReadFull(in, more[:]); {
	case k > 0:
		return fmt.Errorf("%w: got more than the %d bytes that its shape and type need", ErrFormat, n)
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}
