package safetensors_test

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/modelfile/safetensors"
)

// TestGroupE: the ten faults that a hostile file can have, each refused and
// called by its name.
func TestGroupE(t *testing.T) {
	length := func(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }
	entry := func(shape, offsets string) string {
		return `{"dtype":"F32","shape":` + shape + `,"data_offsets":` + offsets + `}`
	}
	a := func(shape, offsets string) string { return `{"a":` + entry(shape, offsets) + `}` }
	two := func(first, second string) string {
		return `{"a":` + entry("[1]", first) + `,"b":` + entry("[1]", second) + `}`
	}
	for _, c := range []struct {
		name string
		b    []byte
		want string
	}{
		{"E1 under 8 bytes", []byte("\x02\x00\x00\x00\x00\x00\x00"), "got 7 of 8 bytes"},
		{"E1 empty", nil, "got 0 of 8 bytes"},
		{"E2 N is 2^63", length(1 << 63), "header of 9223372036854775808 bytes, and the format allows 100000000"},
		{"E2 N is 2^64-1", length(1<<64 - 1), "header of 18446744073709551615 bytes"},
		{"E3 N over the limit", length(100_000_001), "header of 100000001 bytes, and the format allows 100000000"},
		{"E4 N over the file", append(length(3), "{}"...), "header of 3 bytes in a file of 10"},
		{"E5 not UTF-8", file("{\"a\xff\":"+entry("[]", "[0,4]")+"}", 4), "is not UTF-8"},
		{"E5 not UTF-8 in metadata", file("{\"__metadata__\":{\"k\":\"\xc3\x28\"}}", 0), "is not UTF-8"},
		{"E5 not UTF-8 in what is skipped", file("{\"a\":{\"x\":\"\xff\",\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0), "is not UTF-8"},
		{"E5 half a surrogate", file(`{"\ud800":`+entry("[]", "[0,4]")+`}`, 4), "wrong escape"},
		{"E6 tensor twice", file(`{"a":`+entry("[1]", "[0,4]")+`,"a":`+entry("[1]", "[4,8]")+`}`, 8), `"a" occurs twice`},
		{"E6 key twice", file(`{"a":{"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]}}`, 4), "shape occurs twice"},
		{"E6 metadata key twice", file(`{"__metadata__":{"k":"1","k":"2"}}`, 0), `"k" occurs twice`},
		{"E7 overlap", file(two("[0,4]", "[2,6]"), 8), "begins at 2, inside another that ends at 4"},
		{"E7 the same bytes", file(two("[0,4]", "[0,4]"), 4), "inside another"},
		{"E8 gap", file(two("[0,4]", "[6,10]"), 10), "begins at 6, 2 bytes after the last one's end"},
		{"E8 gap before the first", file(a("[1]", "[4,8]"), 8), "4 bytes after the last one's end"},
		{"E8 gap at the end", file(a("[1]", "[0,4]"), 6), "file has 68 bytes, its header needs 66"},
		{"E9 begin over end", file(a("[1]", "[4,0]"), 4), "ends at 0, before it begins at 4"},
		{"E9 negative", file(a("[1]", "[-4,0]"), 4), `got "-4"`},
		{"E9 past the end", file(a("[2]", "[0,8]"), 4), "its header needs"},
		{"E9 past any end", file(`{"a":{"dtype":"U8","shape":[9223372036854775807],"data_offsets":[0,9223372036854775807]}}`, 4), "which no file can reach"},
		{"E10 shape under span", file(a("[1]", "[0,8]"), 8), "has 8 bytes, its shape and type need 4"},
		{"E10 shape over span", file(a("[3]", "[0,8]"), 8), "has 8 bytes, its shape and type need 12"},
		{"E10 product overflows", file(a("[4294967296,4294967296]", "[0,0]"), 0), "too large for any file"},
		{"E10 bytes overflow to the span", file(a("[4611686018427387905]", "[0,4]"), 4), "too large for any file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := open(c.b)
			if !errors.Is(err, safetensors.ErrFormat) || !strings.Contains(err.Error(), c.want) || h != nil {
				t.Errorf("got %+v, %v, want a format error with %q", h, err, c.want)
			}
		})
	}
}

// TestOpeningALargeFileCostsItsHeader: of 20 GiB nothing is read but the header,
// to the byte.
func TestOpeningALargeFileCostsItsHeader(t *testing.T) {
	const tensors, each = 5, int64(4) << 30
	var spans []safetensors.Tensor
	for i := range tensors {
		spans = append(spans, safetensors.Tensor{Name: string(rune('a' + i)), DType: "BF16", Shape: []int64{each / 2 / 4096, 4096}})
	}
	name := filepath.Join(t.TempDir(), "large.safetensors")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := safetensors.WriteHeader(f, nil, spans); err != nil {
		t.Fatal(err)
	}
	header, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		t.Fatal(err)
	}
	size := header + tensors*each
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	r := &counted{r: f}
	h, err := safetensors.ReadHeader(io.NewSectionReader(r, 0, size), size)
	if err != nil {
		t.Fatal(err)
	}
	if h.Size() != size || elements(h) != size/2-header/2 || len(h.Tensors) != tensors {
		t.Errorf("got %d bytes, %d elements", h.Size(), elements(h))
	}
	if r.bytes != header || r.end > header {
		t.Errorf("read %d bytes up to %d, the header has %d", r.bytes, r.end, header)
	}
}

// counted counts the bytes that are read.
type counted struct {
	r          io.ReaderAt
	bytes, end int64
}

func (c *counted) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.r.ReadAt(p, off)
	c.bytes += int64(n)
	c.end = max(c.end, off+int64(n))
	return n, err
}
