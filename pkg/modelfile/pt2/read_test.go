package pt2_test

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/carton-oci/carton-oci/internal/modeltest"
	"github.com/carton-oci/carton-oci/pkg/modelfile/pt2"
)

// one is an archive of one weight over a storage.
func one(storage []byte, w modeltest.Weight) modeltest.Archive {
	w.Name = "w"
	return modeltest.Archive{Storages: [][]byte{storage}, Models: []modeltest.Model{{Name: "m", Weights: []modeltest.Weight{w}}}}
}

// gathered is what a tensor's elements are, by the definition of strides.
func gathered(storage []byte, shape, stride []int64, at, size int64, swap int64) []byte {
	if len(shape) == 0 {
		b := slices.Clone(storage[at*size : (at+1)*size])
		for part := range slices.Chunk(b, int(swap)) {
			slices.Reverse(part)
		}
		return b
	}
	out := []byte{}
	for i := range shape[0] {
		out = append(out, gathered(storage, shape[1:], stride[1:], at+i*stride[0], size, swap)...)
	}
	return out
}

func counting(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i/256)
	}
	return b
}

func TestReadViews(t *testing.T) {
	storage := counting(960)
	for _, c := range []struct {
		name          string
		shape, stride []int64
		at            int64
	}{
		{"contiguous", []int64{2, 3, 4}, []int64{12, 4, 1}, 0},
		{"with an offset", []int64{5}, []int64{1}, 7},
		{"transposed", []int64{4, 3}, []int64{1, 4}, 0},
		{"permuted", []int64{4, 2, 3}, []int64{1, 12, 4}, 3},
		{"every third", []int64{10}, []int64{3}, 1},
		{"columns", []int64{6, 2}, []int64{5, 1}, 2},
		{"repeated rows", []int64{3, 4}, []int64{0, 1}, 2},
		{"repeated columns", []int64{3, 4}, []int64{1, 0}, 2},
		{"all one element", []int64{3, 4}, []int64{0, 0}, 9},
		{"sliding window", []int64{5, 3}, []int64{1, 1}, 4},
		{"scalar", []int64{}, []int64{}, 11},
		{"empty", []int64{3, 0}, []int64{1, 1}, 0},
		{"dimensions of one", []int64{1, 3, 1}, []int64{99, 2, 77}, 1},
	} {
		for dtype, kind := range map[int]struct{ size, swap int64 }{
			modeltest.Byte: {1, 1}, modeltest.Half: {2, 2}, modeltest.Float: {4, 4}, modeltest.Double: {8, 8}, modeltest.Complex: {8, 4},
		} {
			for order, swap := range map[string]int64{"little": 1, "big": kind.swap} {
				a := one(storage, modeltest.Weight{DType: dtype, Shape: c.shape, Stride: c.stride, Offset: c.at})
				a.ByteOrder = order
				b := modeltest.PT2(t, a)
				w := &mustOpen(t, b).Models[0].Weights[0]
				got := read(t, b, w)
				want := gathered(storage, c.shape, c.stride, c.at, kind.size, swap)
				if !bytes.Equal(got, want) || w.Bytes() != int64(len(want)) || w.BigEndian != (order == "big") {
					t.Errorf("%s, type %d, %s endian: got % x, want % x", c.name, dtype, order, got, want)
				}
			}
		}
	}
}

// TestReadRandomViews: whatever the strides and however small the blocks, the
// elements are those of the definition, and nothing outside the span is read.
func TestReadRandomViews(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	storage := counting(64 << 10)
	for range 400 {
		var shape, stride []int64
		last := int64(0)
		for range 1 + random.IntN(4) {
			n, s := 1+random.Int64N(9), random.Int64N(400)
			if random.IntN(3) == 0 {
				s = random.Int64N(3)
			}
			shape, stride = append(shape, n), append(stride, s)
			last += (n - 1) * s
		}
		at := random.Int64N(100)
		if last == 0 || (last+at+1)*2 > int64(len(storage)) {
			continue
		}
		a := one(storage, modeltest.Weight{DType: modeltest.Half, Shape: shape, Stride: stride, Offset: at})
		b := modeltest.PT2(t, a)
		w := &mustOpen(t, b).Models[0].Weights[0]
		want := gathered(storage, shape, stride, at, 2, 1)
		off, n := w.Span()
		c := &counted{r: bytes.NewReader(b)}
		got, err := io.ReadAll(w.ReadInBlocks(c, 1+random.Int64N(200)))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("shape %v, strides %v, offset %d: %v, got % x, want % x", shape, stride, at, err, got, want)
		}
		for _, r := range c.reads {
			if r[0] < off || r[0]+r[1] > off+n {
				t.Fatalf("shape %v, strides %v: %d bytes read at %d, want within %d at %d", shape, stride, r[1], r[0], n, off)
			}
		}
		if !bytes.Equal(read(t, b, w), want) {
			t.Fatalf("shape %v, strides %v, offset %d: Read differs", shape, stride, at)
		}
	}
}

// TestReadIsBounded: a transposed tensor of 36 MiB is gathered through windows of
// 1 MiB; a slice of it reads no more than its span; long leaps are not read.
func TestReadIsBounded(t *testing.T) {
	const side = 3072
	storage := counting(4 * side * side)
	for _, c := range []struct {
		name          string
		shape, stride []int64
		at            int64
		most          int64 // bytes read
	}{
		{"transposed", []int64{side, side}, []int64{1, side}, 0, 3 * 4 * side * side}, // once a block, and there are 3
		{"contiguous rows", []int64{100, side}, []int64{side, 1}, side, 100 * side * 4},
		{"half of each row", []int64{side, side / 2}, []int64{side, 1}, 0, 4 * side * side},
		{"a column", []int64{side}, []int64{side}, 5, 4 * side * side},
		{"every hundredth row's first", []int64{30}, []int64{side * 100}, 0, 30 * 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := modeltest.PT2(t, one(storage, modeltest.Weight{DType: modeltest.Float, Shape: c.shape, Stride: c.stride, Offset: c.at}))
			w := &mustOpen(t, b).Models[0].Weights[0]
			counts := &counted{r: bytes.NewReader(b)}
			r, err := w.Read(counts)
			if err != nil {
				t.Fatal(err)
			}
			header := counts.reads[0][1]
			sum := crc32.NewIEEE()
			n, err := io.Copy(sum, r)
			if err != nil {
				t.Fatal(err)
			}
			total := -header
			for _, r := range counts.reads {
				total += r[1]
				if r[1] > 1<<20 {
					t.Errorf("%d bytes read at once", r[1])
				}
			}
			want := crc32.ChecksumIEEE(gathered2(storage, c.shape, c.stride, c.at))
			if n != w.Bytes() || sum.Sum32() != want || total > c.most {
				t.Errorf("got %d bytes of %d, sum %x want %x; %d bytes read, want at most %d", n, w.Bytes(), sum.Sum32(), want, total, c.most)
			}
		})
	}
}

// gathered2 is gathered for at most two dimensions of four bytes, without a
// slice an element.
func gathered2(storage []byte, shape, stride []int64, at int64) []byte {
	if len(shape) == 1 {
		shape, stride = []int64{1, shape[0]}, []int64{0, stride[0]}
	}
	out := make([]byte, 4*shape[0]*shape[1])
	for i := range shape[0] {
		for j := range shape[1] {
			e := 4 * (at + i*stride[0] + j*stride[1])
			copy(out[4*(i*shape[1]+j):], storage[e:e+4])
		}
	}
	return out
}

func TestReadRefuses(t *testing.T) {
	pickled := modeltest.Weight{DType: modeltest.Float, Shape: []int64{3}, Stride: []int64{1}, Pickle: true}
	raw := modeltest.Weight{DType: modeltest.Float, Shape: []int64{3}, Stride: []int64{1}}
	unknown := raw
	unknown.DType = 77
	repeated := modeltest.Weight{DType: modeltest.Byte, Shape: []int64{1 << 40}, Stride: []int64{0}}
	whole := modeltest.PT2(t, one(floats(3), raw))
	for _, c := range []struct {
		name string
		b    []byte
		want string
	}{
		{"pickled", modeltest.PT2(t, one([]byte("\x80\x02."), pickled)), "is pickled"},
		{"compressed", modeltest.PlainZip(t, true, modeltest.Records(t, whole)...), "is compressed"},
		{"of an unknown type", modeltest.PT2(t, one(floats(3), unknown)), "has the type 77"},
		{"saved from fake tensors", modeltest.PT2(t, one(nil, raw)), "was saved without data"},
		{"sparse", bytes.ReplaceAll(whole, []byte(`"layout":7`), []byte(`"layout":1`)), "has the layout 1"},
		{"repeated beyond measure", modeltest.PT2(t, one(floats(3), repeated)), "repeats 1 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := c.b
			if c.name == "sparse" {
				b = refresh(t, b)
			}
			w := &mustOpen(t, b).Models[0].Weights[0]
			_, err := w.Read(bytes.NewReader(b))
			if !errors.Is(err, pt2.ErrUnreadable) || !bytes.Contains([]byte(err.Error()), []byte(c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if off, _ := w.Span(); (w.Unreadable() == "") != (off >= 0) {
				t.Errorf("unreadable %q, span at %d", w.Unreadable(), off)
			}
			if (c.name == "pickled" || c.name == "compressed") != (w.Offset == -1) {
				t.Errorf("offset %d", w.Offset)
			}
		})
	}
}

// refresh writes an archive again, with the right CRCs.
func refresh(t *testing.T, b []byte) []byte {
	t.Helper()
	return modeltest.TorchZip("archive", "little", trimmed(looseRecords(t, b))...)
}

// TestReadSaysWhatTheSourceSays: an archive that was cut, or a connection that
// breaks, is an error and not the end.
func TestReadSaysWhatTheSourceSays(t *testing.T) {
	for name, stride := range map[string][]int64{"contiguous": {4, 1}, "transposed": {1, 3}} {
		a := one(floats(12), modeltest.Weight{DType: modeltest.Float, Shape: []int64{3, 4}, Stride: stride})
		for _, order := range []string{"little", "big"} {
			a.ByteOrder = order
			b := modeltest.PT2(t, a)
			w := &mustOpen(t, b).Models[0].Weights[0]
			for cut := w.Offset; cut < w.Offset+48; cut += 7 {
				r, err := w.Read(bytes.NewReader(b[:cut]))
				if err == nil {
					_, err = io.ReadAll(r)
				}
				if err == nil {
					t.Errorf("%s, %s: an archive of %d bytes is read as if it were whole", name, order, cut)
				}
			}
			broken := errors.New("connection reset")
			r, err := w.Read(breaking{bytes.NewReader(b), w.Offset, broken})
			if err == nil {
				_, err = io.ReadAll(r)
			}
			if !errors.Is(err, broken) || errors.Is(err, pt2.ErrFormat) {
				t.Errorf("%s, %s: got %v", name, order, err)
			}
			if r, err = w.Read(bytes.NewReader(b)); err != nil {
				t.Fatal(err)
			}
			if err := iotest.TestReader(r, read(t, b, w)); err != nil {
				t.Errorf("%s, %s: %v", name, order, err)
			}
		}
	}
}

// breaking fails reads that begin at an offset or behind it.
type breaking struct {
	r   io.ReaderAt
	at  int64
	err error
}

func (b breaking) ReadAt(p []byte, off int64) (int, error) {
	if off >= b.at {
		return 0, b.err
	}
	return b.r.ReadAt(p, off)
}

// TestReadChecksTheLocalHeader: what lies where the directory says must be the
// entry's bytes.
func TestReadChecksTheLocalHeader(t *testing.T) {
	b := modeltest.PT2(t, one(floats(3), modeltest.Weight{DType: modeltest.Float, Shape: []int64{3}, Stride: []int64{1}}))
	w := &mustOpen(t, b).Models[0].Weights[0]
	for name, at := range map[string]int{"signature": 0, "flags": 6, "method": 8, "size": 22, "extra length": 28, "name": 35} {
		bad := slices.Clone(b)
		bad[at] ^= 1
		if _, err := w.Read(bytes.NewReader(bad)); !errors.Is(err, pt2.ErrFormat) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func ExampleTensor_Read() {
	b := exampleArchive()
	a, err := pt2.Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range a.Models {
		for _, w := range m.Weights {
			r, err := w.Read(bytes.NewReader(b))
			if err != nil {
				fmt.Println(err)
				return
			}
			elements, err := io.ReadAll(r)
			fmt.Printf("%s %s %s %v %d %v\n", m.Name, w.Name, w.DType, w.Shape, elements, err)
		}
	}
	// Output: m w U8 [2 3] [1 3 5 2 4 6] <nil>
}

func exampleArchive() []byte {
	config := `{"config": {"w": {"path_name": "weight_0", "is_param": true, "use_pickle": false, "tensor_meta":
		{"dtype": 1, "layout": 7, "sizes": [{"as_int": 2}, {"as_int": 3}], "strides": [{"as_int": 1}, {"as_int": 2}], "storage_offset": {"as_int": 0}}}}}`
	return modeltest.TorchZip("archive", "little",
		modeltest.Record{Name: "data/weights/weight_0", Data: []byte{1, 2, 3, 4, 5, 6}},
		modeltest.Record{Name: "data/weights/m_weights_config.json", Data: []byte(config)},
		modeltest.Record{Name: "archive_format", Data: []byte("pt2")})
}
