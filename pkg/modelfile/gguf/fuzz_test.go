package gguf_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/carton-oci/carton-oci/internal/modeltest"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
	"github.com/carton-oci/carton-oci/pkg/modelfile/gguf"
)

// FuzzReadHeader: no input crashes it, every error is of a kind, and what it accepts
// an independent reader finds too, tensors apart from each other and in the file.
func FuzzReadHeader(f *testing.F) {
	f.Add(modeltest.GGUF(f, 32, nil))
	f.Add(modeltest.GGUF(f, 64, []any{"general.alignment", uint32(64), "t", []string{"a", "bc"}, "s", "x", "b", true, "i", int8(-1)},
		tensorOf("a", 2, []uint64{32, 2}, make([]byte, 36)), tensorOf("b", 0, nil, make([]byte, 4))))
	f.Add([]byte(modelfile.PointerPrefix + ".github.com/spec/v1\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := gguf.ReadHeader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			if !errors.Is(err, gguf.ErrFormat) && !errors.Is(err, gguf.ErrVersion) && !errors.Is(err, modelfile.ErrPointer) {
				t.Fatalf("got %v, which is of no kind", err)
			}
			return
		}
		keys, tensors := readBySpec(b)
		if len(keys) != len(h.Keys) || len(tensors) != len(h.Tensors) {
			t.Fatalf("got %d keys and %d tensors, want %d and %d", len(h.Keys), len(h.Tensors), len(keys), len(tensors))
		}
		for i, x := range h.Tensors {
			if x.Bytes >= 0 && (x.Bytes != tensors[i].bytes || h.DataStart+x.Offset != tensors[i].at || h.DataStart+x.Offset+x.Bytes > int64(len(b))) {
				t.Fatalf("got %+v, want %+v in %d bytes", x, tensors[i], len(b))
			}
			for _, y := range h.Tensors[:i] {
				if x.Offset < y.Offset+y.Bytes && y.Offset < x.Offset+x.Bytes {
					t.Fatalf("%+v and %+v share bytes", x, y)
				}
			}
		}
		if _, err := gguf.Format.ReadHeader(bytes.NewReader(b), int64(len(b))); err != nil {
			t.Fatal(err)
		}
	})
}
