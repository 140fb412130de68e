package gguf_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/modeltest"
	"github.com/carton-oci/carton-oci/pkg/modelfile/gguf"
)

// le writes numbers as files have them.
func le(numbers ...any) string {
	var b bytes.Buffer
	for _, n := range numbers {
		if s, ok := n.(string); ok {
			b.WriteString(s)
			continue
		}
		_ = binary.Write(&b, binary.LittleEndian, n) // to memory
	}
	return b.String()
}

func text(s string) string { return le(uint64(len(s)), s) }

// begin is the beginning of a file that says so many tensors and keys.
func begin(tensors, keys uint64) string { return le("GGUF", uint32(3), tensors, keys) }

// info says of a tensor a what it is.
func info(kind uint32, offset uint64, dims ...uint64) string {
	s := le(text("a"), uint32(len(dims)))
	for _, d := range dims {
		s += le(d)
	}
	return s + le(kind, offset)
}

// TestHostile: what breaks readers of GGUF is refused by its name, in a file of the
// size that it has and in one whose size nobody knows, and takes no memory.
func TestHostile(t *testing.T) {
	const huge = 1 << 63
	pad := strings.Repeat("\x00", 4096)
	aligned := func(value string) string { return begin(0, 1) + text("general.alignment") + value }
	for _, c := range []struct{ name, b, want string }{
		{"empty", "", "ends after 0 bytes"},
		{"4 bytes", "GGUF", "version"},
		{"another magic", "GGML" + pad, `begins with "GGML", want GGUF`},
		{"version 0", le("GGUF", uint32(0), pad), "version 0"},
		{"2^63 tensors", begin(huge, 0) + pad, "9223372036854775808 tensors"},
		{"2^63 keys", begin(0, huge) + pad, "9223372036854775808 keys"},
		{"more keys than bytes", begin(0, 500) + pad, "500 keys"},
		{"name of 2^63 bytes", begin(0, 1) + le(uint64(huge), pad), "9223372036854775808 bytes"},
		{"name of 2^64-1 bytes", begin(0, 1) + le(^uint64(0), pad), "18446744073709551615 bytes"},
		{"empty name", begin(0, 1) + text("") + pad, "its name is empty"},
		{"name that is not UTF-8", begin(0, 1) + text("\xff\xfe") + pad, "is not UTF-8"},
		{"value of 2^63 bytes", begin(0, 1) + le(text("k"), uint32(8), uint64(huge), pad), "9223372036854775808"},
		{"value of an unknown type", begin(0, 1) + le(text("k"), uint32(13), pad), "type 13"},
		{"value of the type -1", begin(0, 1) + le(text("k"), int32(-1), pad), "type 4294967295"},
		{"array of 2^63 strings", begin(0, 1) + le(text("k"), uint32(9), uint32(8), uint64(huge), pad), "9223372036854775808"},
		{"array whose bytes wrap", begin(0, 1) + le(text("k"), uint32(9), uint32(10), uint64(1<<61), pad), "2305843009213693952"},
		{"array of 2^63 arrays", begin(0, 1) + le(text("k"), uint32(9), uint32(9), uint64(huge), pad), "9223372036854775808"},
		{"array of an unknown type", begin(0, 1) + le(text("k"), uint32(9), uint32(99), uint64(1), pad), "type 99"},
		{"arrays 5 deep", begin(0, 1) + text("k") + le(uint32(9)) + strings.Repeat(le(uint32(9), uint64(1)), 5) + pad, "nest more than 4 deep"},
		{"bool of 2", begin(0, 1) + le(text("k"), uint32(7), uint8(2), pad), "value 2"},
		{"key twice", begin(0, 2) + strings.Repeat(text("k")+le(uint32(0), uint8(1)), 2) + pad, `"k" occurs twice`},
		{"alignment 0", aligned(le(uint32(4), uint32(0), pad)), "power of two"},
		{"alignment 24", aligned(le(uint32(4), uint32(24), pad)), "power of two"},
		{"alignment 2^31", aligned(le(uint32(4), uint32(1<<31), pad)), "power of two"},
		{"alignment of 64 bits", aligned(le(uint32(10), uint64(32), pad)), "power of two"},
		{"alignment that is text", aligned(le(uint32(8), text("32"), pad)), "power of two"},
		{"5 dimensions", begin(1, 0) + info(0, 0, 1, 1, 1, 1, 1) + pad, "5 dimensions"},
		{"2^32-1 dimensions", begin(1, 0) + text("a") + le(^uint32(0), pad), "4294967295 dimensions"},
		{"dimension of 0", begin(1, 0) + info(0, 0, 4, 0) + pad, "dimension of 0"},
		{"dimension of 2^63", begin(1, 0) + info(0, 0, huge) + pad, "dimension of 9223372036854775808"},
		{"two dimensions that wrap", begin(1, 0) + info(0, 0, 1<<32, 1<<32) + pad, "too large for any file"},
		{"four dimensions that wrap to 0", begin(1, 0) + info(0, 0, 1<<31, 1<<31, 4, 1) + pad, "too large for any file"},
		{"bytes that wrap", begin(1, 0) + info(28, 0, 1<<61) + pad, "too large for any file"},
		{"half a block", begin(1, 0) + info(12, 0, 255) + pad, "don't fill blocks of 256 (Q4_K)"},
		{"blocks that end in another row", begin(1, 0) + info(12, 0, 16, 16) + pad, "don't fill blocks"},
		{"offset not aligned", begin(1, 0) + info(0, 4, 1) + pad, "not at a multiple of 32"},
		{"offset of 2^63", begin(1, 0) + info(0, huge, 1) + pad, "which no file can reach"},
		{"tensor twice", begin(2, 0) + info(0, 0, 1) + info(0, 32, 1) + pad, `"a" occurs twice`},
		{"overlap", begin(2, 0) + info(0, 0, 9) + strings.Replace(info(0, 32, 1), "a", "b", 1) + pad, "inside another"},
		{"two tensors in one place", begin(2, 0) + info(0, 0, 9) + strings.Replace(info(77, 0, 1), "a", "b", 1) + pad, "inside another"},
		{"tensor without a name", begin(1, 0) + text("") + pad, "its name is empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, size := range []int64{int64(len(c.b)), -1} {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				h, err := gguf.ReadHeader(strings.NewReader(c.b), size)
				runtime.ReadMemStats(&after)
				if !errors.Is(err, gguf.ErrFormat) || h != nil {
					t.Fatalf("size %d: got %+v, %v, want a format error", size, h, err)
				}
				if size >= 0 && !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q in it", err, c.want)
				}
				if n := after.TotalAlloc - before.TotalAlloc; n > 200<<10 {
					t.Errorf("size %d: took %d bytes of memory", size, n)
				}
			}
		})
	}
}

// TestTensorsLargerThanTheFile: a shape that fits into numbers and not into the file.
func TestTensorsLargerThanTheFile(t *testing.T) {
	b := modeltest.GGUF(t, 32, nil, tensorOf("a", 0, []uint64{1000}, make([]byte, 4000)))
	for _, size := range []int{len(b) - 200, len(b) - 4000} {
		if _, err := gguf.ReadHeader(bytes.NewReader(b), int64(size)); !errors.Is(err, gguf.ErrFormat) || !strings.Contains(err.Error(), "its tensors end at") {
			t.Errorf("%d bytes: got %v", size, err)
		}
	}
	h, err := gguf.ReadHeader(bytes.NewReader(b), -1)
	if err != nil || h.End() != h.DataStart+4000 {
		t.Errorf("of unknown size: got %+v, %v", h, err)
	}
}

// TestFormsThatAreNotRead are named.
func TestFormsThatAreNotRead(t *testing.T) {
	big := []byte(begin(0, 0))
	binary.BigEndian.PutUint32(big[4:], 3)
	for want, b := range map[string]string{
		"version 1": le("GGUF", uint32(1), uint32(0), uint32(0)), "big-endian": string(big), "version 4": le("GGUF", uint32(4), uint64(0)),
		"before GGUF (ggjt)": "tjgg\x03\x00\x00\x00", "before GGUF (ggml)": "lmgg\x00\x00\x00\x00",
	} {
		_, err := gguf.ReadHeader(strings.NewReader(b), -1)
		if !errors.Is(err, gguf.ErrVersion) || errors.Is(err, gguf.ErrFormat) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
