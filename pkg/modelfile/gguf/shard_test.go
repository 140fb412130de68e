package gguf_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/carton-oci/carton-oci/internal/modeltest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
	"github.com/carton-oci/carton-oci/pkg/modelfile/gguf"
)

// joined writes a shard of files.
func joined(s modelfile.Shard, files ...[]byte) []byte {
	var b []byte
	for _, p := range s.Pieces {
		if p.Text != nil {
			b = append(b, p.Text...)
		} else {
			b = append(b, files[p.File][p.Off:p.Off+p.Len]...)
		}
	}
	return b
}

func header(t *testing.T, b []byte) *gguf.Header {
	t.Helper()
	h, err := gguf.ReadHeader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestPartsAreThoseOfGGUFSplit: byte for byte what gguf-split made of the same file.
func TestPartsAreThoseOfGGUFSplit(t *testing.T) {
	read := func(name string) []byte {
		b, err := os.ReadFile(testenv.Foreign(t, "gguf/"+name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	whole := read("dummy.gguf")
	shards := gguf.PartsAt(header(t, whole), 0, 10)
	for i, s := range shards {
		name := gguf.PartName("dummy", i+1, len(shards))
		if want := read(name); !bytes.Equal(joined(s, whole), want) {
			t.Errorf("%s: got %d bytes, which are not the %d that gguf-split wrote", name, len(joined(s, whole)), len(want))
		}
	}
}

// TestShards: whatever the size, an independent reader finds every tensor with its
// bytes, the parts are a whole set, and cutting what was cut gives the same.
func TestShards(t *testing.T) {
	whole := llama(t)
	whole = modeltest.GGUF(t, 64, []any{"general.alignment", uint32(64), "split.count", uint16(1), "general.name", "x", "t", []string{"a", "b"}}, tensorsOf(t, whole)...)
	_, want := readBySpec(whole)
	for _, most := range []int64{1, 300, 1000, 5000, 1 << 20} {
		shards, err := gguf.Shards([]*gguf.Header{header(t, whole)}, most)
		if err != nil {
			t.Fatal(err)
		}
		next := 0
		var files [][]byte
		var headers []*gguf.Header
		var set []gguf.SetFile
		for i, s := range shards {
			b := joined(s, whole)
			h := sameAsBySpec(t, b)
			keys, tensors := readBySpec(b)
			if len(b) > int(most) && len(tensors) > 1 || len(s.Tensors) != len(tensors) {
				t.Errorf("most %d: got a file of %d bytes with %d tensors", most, len(b), len(tensors))
			}
			if keys["split.no"] != uint16(i) || keys["split.count"] != uint16(len(shards)) || keys["split.tensors.count"] != uint32(len(want)) || (keys["general.name"] == "x") != (i == 0) {
				t.Errorf("most %d: got the keys %v", most, keys)
			}
			for _, x := range tensors {
				w := want[next]
				next++
				if x.name != w.name || x.kind != w.kind || fmt.Sprint(x.shape) != fmt.Sprint(w.shape) || !bytes.Equal(b[x.at:x.at+x.bytes], whole[w.at:w.at+w.bytes]) {
					t.Fatalf("most %d: got %+v, want %+v", most, x, w)
				}
			}
			c, err := gguf.Format.ReadHeader(bytes.NewReader(b), int64(len(b)))
			if err != nil || len(c.Findings) > 0 {
				t.Fatalf("got %v, %v", c, err)
			}
			files, headers = append(files, b), append(headers, h)
			set = append(set, gguf.SetFile{Name: gguf.PartName("m", i+1, len(shards)), Part: c.Part, Tensors: len(tensors)})
		}
		if next != len(want) || len(shards) > 1 && gguf.CheckSet(set, 0) != nil {
			t.Errorf("most %d: got %d tensors of %d, %v", most, next, len(want), gguf.CheckSet(set, 0))
		}
		again, err := gguf.Shards(headers, 2000)
		if err != nil {
			t.Fatal(err)
		}
		direct, _ := gguf.Shards([]*gguf.Header{header(t, whole)}, 2000)
		for i := range direct {
			if !bytes.Equal(joined(again[i], files...), joined(direct[i], whole)) {
				t.Errorf("most %d: part %d of what was cut before is another", most, i)
			}
		}
	}
	unknown := modeltest.GGUF(t, 32, nil, tensorOf("a", 77, []uint64{3}, make([]byte, 100)))
	if _, err := gguf.Shards([]*gguf.Header{header(t, unknown)}, 10); !errors.Is(err, gguf.ErrFormat) {
		t.Errorf("got %v, want an error: nobody knows the size", err)
	}
}

// tensorsOf returns the tensors of a file, with other bytes.
func tensorsOf(t *testing.T, b []byte) []tensor {
	t.Helper()
	var out []tensor
	for i, x := range header(t, b).Tensors {
		var dims []uint64
		for _, d := range x.Shape {
			dims = append([]uint64{uint64(d)}, dims...)
		}
		out = append(out, tensorOf(x.Name, uint32(x.Type), dims, bytes.Repeat([]byte{byte(i + 1)}, int(x.Bytes))))
	}
	return out
}
