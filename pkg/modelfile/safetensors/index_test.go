package safetensors_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/carton-oci/carton-oci/pkg/modelfile/safetensors"
)

const goodIndex = `{"metadata": {"total_size": 16060522496, "total_parameters": 8030261248}, "weight_map": {
	"lm_head.weight": "model-00002-of-00002.safetensors",
	"model.embed_tokens.weight": "model-00001-of-00002.safetensors",
	"model.norm.weight": "model-00002-of-00002.safetensors"}}`

func TestReadIndex(t *testing.T) {
	x, err := safetensors.ReadIndex(strings.NewReader(goodIndex))
	if err != nil {
		t.Fatal(err)
	}
	want := &safetensors.Index{
		Files: map[string]string{
			"lm_head.weight":            "model-00002-of-00002.safetensors",
			"model.embed_tokens.weight": "model-00001-of-00002.safetensors",
			"model.norm.weight":         "model-00002-of-00002.safetensors",
		},
		TotalSize: 16_060_522_496,
	}
	if diff := cmp.Diff(want, x); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}, x.Shards()); diff != "" {
		t.Error(diff)
	}
	for written, want := range map[string]int64{`{}`: -1, `{"total_size":1.5e10}`: 15e9, `{"total_size":7.0}`: 7, `{"total_size":0}`: 0} {
		x, err := safetensors.ReadIndex(strings.NewReader(`{"weight_map":{},"metadata":` + written + `}`))
		if err != nil || x.TotalSize != want || len(x.Shards()) != 0 {
			t.Errorf("%s: got %+v, %v", written, x, err)
		}
	}
}

func TestBadIndexes(t *testing.T) {
	file := func(name string) string { return `{"weight_map":{"a":` + name + `}}` }
	for _, c := range []struct{ name, index, want string }{
		{"empty", ``, "unexpected EOF"},
		{"array", `[]`, "want '{'"},
		{"no map", `{"metadata":{}}`, "has no weight_map"},
		{"cut", goodIndex[:150], "unexpected EOF"},
		{"trailing", goodIndex + "x", "want the end"},
		{"map twice", `{"weight_map":{},"weight_map":{}}`, "occurs twice"},
		{"tensor twice", `{"weight_map":{"a":"x","a":"x"}}`, `"a" occurs twice`},
		{"tensor twice by escape", `{"weight_map":{"a":"x","\u0061":"y"}}`, `"a" occurs twice`},
		{"size twice", `{"metadata":{"total_size":1,"total_size":1}}`, "occurs twice"},
		{"file is a number", file(`7`), `want '"'`},
		{"empty name", file(`""`), "is no file name"},
		{"dots", file(`".."`), "is no file name"},
		{"climbs", file(`"../x.safetensors"`), "is a path"},
		{"folder", file(`"x/y.safetensors"`), "is a path"},
		{"absolute", file(`"/etc/passwd"`), "is a path"},
		{"backslash", file(`"x\\y"`), "is a path"},
		{"newline", file(`"x\ny"`), "control character"},
		{"NUL", file(`"x\u0000"`), "control character"},
		{"long", file(`"` + strings.Repeat("x", 256) + `"`), "at most 255"},
		{"size is a string", `{"metadata":{"total_size":"7"}}`, "want a number"},
		{"negative size", `{"metadata":{"total_size":-7}}`, "whole number of bytes"},
		{"half a byte", `{"metadata":{"total_size":7.5}}`, "whole number of bytes"},
		{"size over a file", `{"metadata":{"total_size":1e30}}`, "whole number of bytes"},
		{"deep nesting", `{"x":` + strings.Repeat("[", 10_000), "nested deeper"},
		{"not UTF-8", "{\"weight_map\":{\"a\xff\":\"x\"}}", "not UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := safetensors.ReadIndex(strings.NewReader(c.index))
			if !errors.Is(err, safetensors.ErrFormat) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want a format error with %q", err, c.want)
			}
		})
	}
	broken := errors.New("connection reset")
	_, err := safetensors.ReadIndex(io.MultiReader(strings.NewReader(goodIndex[:100]), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || errors.Is(err, safetensors.ErrFormat) {
		t.Errorf("a broken connection: got %v", err)
	}
}

// TestEndlessIndex: a limit of its length holds whatever it is made of.
func TestEndlessIndex(t *testing.T) {
	_, err := safetensors.ReadIndex(io.MultiReader(strings.NewReader(`{"weight_map":{}`), spaces{}))
	if !errors.Is(err, safetensors.ErrFormat) || !strings.Contains(err.Error(), "EOF") && !strings.Contains(err.Error(), "longer") {
		t.Errorf("got %v", err)
	}
}

type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func FuzzReadIndex(f *testing.F) {
	f.Add([]byte(goodIndex))
	f.Add([]byte(`{"weight_map":{"\u00e9":"x"},"metadata":{"total_size":1.5e10,"x":[null]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := safetensors.ReadIndex(strings.NewReader(string(b)))
		if err != nil {
			if !errors.Is(err, safetensors.ErrFormat) {
				t.Fatalf("got %v, which is of no kind", err)
			}
			return
		}
		for _, s := range x.Shards() {
			if s == "" || s == "." || s == ".." || len(s) > 255 || strings.ContainsAny(s, "/\\\x00\n") {
				t.Fatalf("accepted the file name %q", s)
			}
		}
		if x.TotalSize < -1 {
			t.Fatalf("total size %d", x.TotalSize)
		}
	})
}
