package pt2_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/carton-oci/carton-oci/internal/modeltest"
	"github.com/carton-oci/carton-oci/pkg/modelfile/pt2"
)

// opened checks what Open made of bytes from outside: an error of a kind, or
// tensors whose elements are there.
func opened(t *testing.T, b []byte) {
	a, err := open(b)
	if err != nil {
		if !errors.Is(err, pt2.ErrFormat) && !errors.Is(err, pt2.ErrNotPT2) && !errors.Is(err, pt2.ErrVersion) {
			t.Fatalf("got %v, which is of no kind", err)
		}
		return
	}
	for _, m := range a.Models {
		for _, w := range append(m.Weights, m.Constants...) {
			if w.Unreadable() != "" {
				continue
			}
			if off, n := w.Span(); off < 0 || n < 0 || off+n > int64(len(b)) || w.Bytes() < 0 {
				t.Fatalf("tensor %+v needs %d bytes at %d of %d", w, n, off, len(b))
			}
			r, err := w.Read(bytes.NewReader(b))
			if err != nil {
				continue // the local header
			}
			want := min(w.Bytes(), 1<<20)
			if n, err := io.Copy(io.Discard, io.LimitReader(r, want)); err != nil || n != want {
				t.Fatalf("tensor %+v: read %d of %d bytes: %v", w, n, want, err)
			}
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(exampleArchive())
	f.Add(modeltest.PT2(f, sharing()))
	f.Add(modeltest.PlainZip(f, true, text("serialized_exported_program.json", string(modeltest.Definition(f, sharing().Models[1])))))
	f.Add(modeltest.PlainZip(f, false, text("archive_format", "pt2"), text("data/aotinductor/m/x_metadata.json", `{"AOTI_DEVICE_KEY":"cpu"}`)))
	f.Fuzz(opened)
}

func FuzzWeightsConfig(f *testing.F) {
	f.Add([]byte(configOf(goodMeta)))
	f.Add(modeltest.WeightsConfig(f, "weight_", sharing().Models[1].Weights))
	f.Add([]byte(`{"config":{"o":{"path_name":"weight_0","use_pickle":true,"tensor_meta":null}}}`))
	f.Fuzz(func(t *testing.T, config []byte) { opened(t, archiveWith(string(config), `{}`)) })
}

func FuzzDefinition(f *testing.F) {
	f.Add(modeltest.Definition(f, sharing().Models[0]))
	f.Add(modeltest.Definition(f, sharing().Models[1]))
	f.Add([]byte(`{"graph_module":{"signature":{"input_specs":[{"user_input":{"arg":{"as_sym_int":{"as_name":"s0"}}}}]}}}`))
	f.Fuzz(func(t *testing.T, definition []byte) { opened(t, archiveWith(configOf(goodMeta), string(definition))) })
}

// FuzzCompiled fuzzes an AOTInductor package's weights config and metadata.
func FuzzCompiled(f *testing.F) {
	f.Add([]byte(`{"w":["weight_0",[3,4],[4,1],0]}`), []byte(`{"nodes":[{"name":"a","node":{"target":"my.op"}}]}`))
	f.Fuzz(func(t *testing.T, weights, ops []byte) {
		opened(t, modeltest.TorchZip("archive", "little",
			text("data/weights/weight_0", "x"),
			modeltest.Record{Name: "data/aotinductor/m/weights_config.json", Data: weights},
			modeltest.Record{Name: "data/aotinductor/m/x.json", Data: ops},
			modeltest.Record{Name: "data/aotinductor/m/x_metadata.json", Data: ops},
			text("archive_format", "pt2")))
	})
}
