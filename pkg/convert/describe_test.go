package convert

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/modeltest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// safetensorsOf writes a file with one tensor of each type, of n elements, and a
// header that is padded to pad bytes.
func safetensorsOf(n, pad int, dtypes ...string) []byte {
	sizes := map[string]int{"F32": 4, "BF16": 2, "F16": 2, "I64": 8, "U8": 1, "F8_E4M3": 1, "BOOL": 1}
	var entries []string
	off := 0
	for i, d := range dtypes {
		end := off + n*sizes[d]
		entries = append(entries, fmt.Sprintf(`"t%d":{"dtype":%q,"shape":[%d],"data_offsets":[%d,%d]}`, i, d, n, off, end))
		off = end
	}
	header := "{" + strings.Join(entries, ",") + "}"
	if len(header) < pad {
		header += strings.Repeat(" ", pad-len(header))
	}
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, off)...)
}

// headerAtOnce is how much of a header pkg/inspect asks for first.
const headerAtOnce = 8 + 100<<10

func detailsOf(t *testing.T, files map[string][]byte, symlinks map[string]string) Details {
	t.Helper()
	return detailsFrom(t, cartontest.New(files, symlinks))
}

func detailsFrom(t *testing.T, src carton.Source) Details {
	t.Helper()
	a, err := artifactOf(t.Context(), src, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, _ := a.Config.Open(t.Context(), 0)
	b, _ := io.ReadAll(r)
	c, err := ParseModelConfig(b)
	if err != nil {
		t.Fatal(err)
	}
	return c.Config
}

func TestDetails(t *testing.T) {
	for name, c := range map[string]struct {
		files    map[string][]byte
		symlinks map[string]string
		want     Details
	}{
		"nothing known": {
			files: map[string][]byte{"model/a.json": {1}, "model/unknown": {1}, "misc/a.safetensors": safetensorsOf(1, 0, "F32")},
		},
		"every shard": {
			files: map[string][]byte{
				"model/1.safetensors": safetensorsOf(600, 0, "BF16", "F32"),
				"model/2.safetensors": safetensorsOf(700, 0, "BF16", "I64"),
			},
			want: Details{Format: "safetensors", Precision: "int64,bfloat16,float32", ParamSize: "2.6K"},
		},
		"ties by name": {
			files: map[string][]byte{"model/1.safetensors": safetensorsOf(5, 0, "F8_E4M3", "U8", "BOOL")},
			want:  Details{Format: "safetensors", Precision: "bool,float8_e4m3,uint8", ParamSize: "15"},
		},
		"the same content and symlinks once": {
			files: map[string][]byte{
				"model/1.safetensors": safetensorsOf(5, 0, "F32"), "model/2.safetensors": safetensorsOf(5, 0, "F32"),
			},
			symlinks: map[string]string{"model/3.safetensors": "1.safetensors"},
			want:     Details{Format: "safetensors", Precision: "float32", ParamSize: "5"},
		},
		"the format with the most bytes": {
			files: map[string][]byte{
				"model/a.safetensors": safetensorsOf(5, 0, "F32"), "model/b.GGUF": make([]byte, 1000), "model/c.onnx": make([]byte, 999),
			},
			want: Details{Format: "gguf", Precision: "float32", ParamSize: "5"},
		},
		"broken files count for the format": {
			files: map[string][]byte{
				"model/1.safetensors": safetensorsOf(5, 0, "F32")[:100], "model/2.safetensors": nil,
				"model/3.safetensors": {1, 2, 3}, "model/4.safetensors": append(safetensorsOf(6, 0, "F32"), 0),
				"model/5.safetensors": []byte("\xff\xff\xff\xff\xff\xff\xff\xff{}"),
			},
			want: Details{Format: "safetensors"},
		},
		"an empty header": {
			files: map[string][]byte{"model/1.safetensors": safetensorsOf(0, 0)},
			want:  Details{Format: "safetensors"},
		},
		"a header longer than one range": {
			files: map[string][]byte{"model/1.safetensors": safetensorsOf(5, 2*headerAtOnce+7, "F16")},
			want:  Details{Format: "safetensors", Precision: "float16", ParamSize: "5"},
		},
		"torch": {
			files: map[string][]byte{"model/pytorch_model.bin": {1}, "tensor_data/x.onnx": make([]byte, 9)},
			want:  Details{Format: "pytorch"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := detailsOf(t, c.files, c.symlinks); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestDetailsOfARealModel(t *testing.T) {
	b, err := os.ReadFile(testenv.Foreign(t, "safetensors/mnist.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	got := detailsOf(t, map[string][]byte{"model/mnist.safetensors": b}, nil)
	if want := (Details{Format: "safetensors", Precision: "float32,int64", ParamSize: "376.9K"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// A carton has one config whatever its form, although PT2 archives are read
// forward where they are compressed.
func TestDetailsOfAnArchiveInEveryForm(t *testing.T) {
	const path = "model/m.pt2"
	w := modeltest.Weight{DType: modeltest.BFloat16, Shape: []int64{600, 2}, Stride: []int64{2, 1}, Param: true}
	a, b := w, w
	a.Name, b.Name = "a", "tied"
	archive := modeltest.PT2(t, modeltest.Archive{
		Storages: [][]byte{make([]byte, 2400)}, Models: []modeltest.Model{{Name: "m", Weights: []modeltest.Weight{a, b}}},
	})
	files := map[string][]byte{path: archive}
	want := Details{Format: "pt2", Precision: "bfloat16", ParamSize: "1.2K"}
	for name, src := range map[string]carton.Source{
		"stored":     cartontest.New(files, nil),
		"compressed": cartontest.New(files, nil, cartontest.WithPlace(carton.PlaceCompressed, path)),
		"bundled":    cartontest.New(files, nil, cartontest.WithBundle(1, path)),
		"linked":     cartontest.New(files, nil, cartontest.WithPlace(carton.PlaceLinked, path)),
		"a symlink":  cartontest.New(map[string][]byte{"model/blob": archive}, map[string]string{path: "blob"}),
	} {
		if got := detailsFrom(t, src); got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
	for _, c := range []Compression{CompressNone, CompressGzip, CompressZstd} {
		s, desc, _ := pushed(t, cartontest.New(files, nil), Options{Layers: FormTar, Compress: c})
		if got := detailsFrom(t, opened(t, s, desc, OpenOptions{})); got != want {
			t.Errorf("from tar layers, %s: got %+v, want %+v", c, got, want)
		}
	}
}

func TestHeadersAreReadByRange(t *testing.T) {
	for pad, ranges := range map[int]int{100: 1, 2 * headerAtOnce: 2} {
		src := cartontest.New(map[string][]byte{"model/1.safetensors": safetensorsOf(100_000, pad, "F32")}, nil)
		s, desc, _ := pushed(t, src, Options{})
		got := opened(t, s, desc, OpenOptions{})
		s.reset()
		detailsFrom(t, got)
		if want := int64(pad + headerAtOnce + 1000); len(s.requests) != ranges || s.sent > want {
			t.Errorf("a header of %d bytes: took %d requests and %d bytes, want %d and less than %d", pad, len(s.requests), s.sent, ranges, want)
		}
	}
}

func TestASourceThatFailsAtAHeader(t *testing.T) {
	src := cartontest.New(map[string][]byte{"model/1.safetensors": safetensorsOf(50_000, 0, "F32")}, nil)
	s, desc, a := pushed(t, src, Options{})
	got := opened(t, s, desc, OpenOptions{})
	for _, l := range a.Layers {
		if l.Name == "model/1.safetensors" {
			delete(s.blobs, l.Digest)
		}
	}
	if _, err := artifactOf(t.Context(), got, Options{}); !errors.Is(err, layout.ErrNotFound) || !strings.Contains(err.Error(), "model/1.safetensors") {
		t.Errorf("got %v, want that the blob is not there", err)
	}
}

func TestConfigsFollowTheSchema(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile(testenv.Foreign(t, "modelpack/config-schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	check := func(b []byte) error {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
		if err != nil {
			t.Fatal(err)
		}
		return schema.Validate(v)
	}
	if check([]byte(`{"descriptor":{},"config":{},"modelfs":{"type":"layers","diffIds":["x"]},"more":1}`)) == nil {
		t.Fatal("the schema takes anything")
	}
	sources := map[string]carton.Source{
		"all fields":  kinds(),
		"safetensors": cartontest.New(map[string][]byte{"model/1.safetensors": safetensorsOf(5, 0, "F32")}, nil),
		"no fields": cartontest.New(map[string][]byte{
			"carton.toml": []byte("spec_version = 1\n[runner]\nrunner_name = \"r\"\nrequired_framework_version = \"*\"\n"),
		}, nil),
	}
	for name, src := range sources {
		for mode, opts := range modes() {
			a, err := artifactOf(t.Context(), src, opts)
			if err != nil {
				t.Fatal(err)
			}
			r, _ := a.Config.Open(t.Context(), 0)
			b, _ := io.ReadAll(r)
			if err := check(b); err != nil {
				t.Errorf("%s: %s: %v\n%s", name, mode, err, b)
			}
		}
	}
}

func TestConfig(t *testing.T) {
	_, _, a := pushed(t, kinds(), Options{Created: modes()["cnai created"].Created})
	r, _ := a.Config.Open(t.Context(), 0)
	b, _ := io.ReadAll(r)
	want := `{"descriptor":{"createdAt":"2023-11-14T22:13:20Z","name":"Café \u003c3 \u0026 more","title":"Café \u003c3 \u0026 more",` +
		`"description":"A model for tests","docURL":"https://example.com/home","sourceURL":"https://example.com/repo",` +
		`"licenses":["Apache-2.0 OR MIT"]},"config":{"format":"pytorch"},"modelfs":{"type":"layers","diffIds":[`
	for i, l := range a.Layers {
		if i > 0 {
			want += ","
		}
		want += `"` + l.Digest.String() + `"`
	}
	if want += "]}}"; string(b) != want {
		t.Errorf("got\n%s\nwant\n%s", b, want)
	}
}

func TestDiffIDsAreOfUncompressedTars(t *testing.T) {
	ids := func(c Compression) []string {
		_, _, a := pushed(t, kinds(), Options{BundleBelow: 100, Compress: c})
		r, _ := a.Config.Open(t.Context(), 0)
		b, _ := io.ReadAll(r)
		config, err := ParseModelConfig(b)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for i, d := range config.ModelFS.DiffIDs {
			ids = append(ids, d.String())
			if same := d == a.Layers[i].Digest; same == strings.Contains(a.Layers[i].MediaType, "+") {
				t.Errorf("%s %s: the diffId is the digest: %v", c, a.Layers[i].Name, same)
			}
		}
		return ids
	}
	plain := strings.Join(ids(CompressNone), " ")
	if strings.Join(ids(CompressZstd), " ") != plain || strings.Join(ids(CompressGzip), " ") != plain {
		t.Error("diffIds depend on the compression")
	}
}

func TestConfigsOfOthers(t *testing.T) {
	c, err := ParseModelConfig([]byte(`{"modelfs":{"type":"layers","diff_ids":["a","b"]},"config":{"precision":"int8","capabilities":{}}}`))
	if err != nil || len(c.ModelFS.DiffIDs) != 2 || c.Config.Precision != "int8" {
		t.Errorf("got %+v, %v", c, err)
	}
	for _, text := range []string{"", "[]", "{", `{"config":7}`, `{"descriptor":{"name":7}}`} {
		if c, err := ParseModelConfig([]byte(text)); !errors.Is(err, layout.ErrFormat) {
			t.Errorf("%q: got %+v, %v, want ErrFormat", text, c, err)
		}
	}
}

func FuzzParseModelConfig(f *testing.F) {
	f.Add([]byte(`{"descriptor":{"name":"n","licenses":["l"]},"config":{},"modelfs":{"type":"layers","diff_ids":["x"]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseModelConfig(b)
		if err == nil && c == nil {
			t.Error("neither a config nor an error")
		}
	})
}
