package pt2_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/modelfile/pt2"
)

// torchSays is what torch.export.load says of an archive that torch.export.save
// wrote: [dtype, shape, sha256] by name, and [name, dtype, shape] in order.
type torchSays struct {
	Weights, Constants map[string][3]any
	Inputs, Outputs    [][3]any
	Params             []string
}

// torchTypes are torch's names for the types.
var torchTypes = map[string]string{
	"U8": "uint8", "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64", "U16": "uint16", "U32": "uint32", "U64": "uint64",
	"F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64", "C32": "complex32", "C64": "complex64", "C128": "complex128",
	"BOOL": "bool", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E4M3FNUZ": "float8_e4m3fnuz",
	"F8_E5M2FNUZ": "float8_e5m2fnuz", "F8_E8M0": "float8_e8m0fnu",
}

// TestArchivesOfTorch reads what torch 2.14 wrote as torch 2.14 reads it: every
// weight's and constant's type, shape and elements, and what goes in and out.
func TestArchivesOfTorch(t *testing.T) {
	raw, err := os.ReadFile(testenv.Foreign(t, "pt2/torch-2.14/expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var expected map[string]torchSays
	if err := json.Unmarshal(raw, &expected); err != nil {
		t.Fatal(err)
	}
	for name, want := range expected {
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile(testenv.Foreign(t, "pt2/torch-2.14/"+name+".pt2"))
			if err != nil {
				t.Fatal(err)
			}
			a := mustOpen(t, b)
			m := &a.Models[slices.IndexFunc(a.Models, func(m pt2.Model) bool { return m.Name == "model" })]
			wantTensors(t, b, m.Weights, want.Weights)
			wantTensors(t, b, m.Constants, want.Constants)
			wantValues(t, m.Inputs, want.Inputs)
			wantValues(t, m.Outputs, want.Outputs)
			if len(a.Findings) > 0 {
				t.Errorf("found %q in what torch wrote", a.Findings)
			}
		})
	}
}

func wantTensors(t *testing.T, b []byte, tensors []pt2.Tensor, want map[string][3]any) {
	t.Helper()
	got := map[string][3]any{}
	for i := range tensors {
		x := &tensors[i]
		r, err := x.Read(bytes.NewReader(b))
		if err != nil {
			t.Errorf("%s: %v", x.Name, err)
			continue
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Errorf("%s: %v", x.Name, err)
		}
		sum := sha256.Sum256(content)
		shape := []any{}
		for _, n := range x.Shape {
			shape = append(shape, float64(n))
		}
		got[x.Name] = [3]any{torchTypes[x.DType], shape, hex.EncodeToString(sum[:])}
	}
	if len(want) == 0 && len(got) == 0 {
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// wantValues compares lengths and symbols. torch prints an expression otherwise
// than it writes it: that there is one is all that is compared.
func wantValues(t *testing.T, values []pt2.Value, want [][3]any) {
	t.Helper()
	if len(values) != len(want) {
		t.Fatalf("got %d values, want %d", len(values), len(want))
	}
	for i, v := range values {
		if v.Kind != "tensor" {
			continue
		}
		var shape []any
		for j, d := range v.Shape {
			text := d.Symbol
			if text == "" {
				text = strconv.FormatInt(d.Size, 10)
			}
			theirs, _ := want[i][2].([]any)
			if j < len(theirs) && strings.ContainsAny(text, "( ") && strings.ContainsAny(theirs[j].(string), " */(") {
				text = theirs[j].(string)
			}
			shape = append(shape, text)
		}
		if diff := cmp.Diff(want[i], [3]any{v.Name, torchTypes[v.DType], append([]any{}, shape...)}); diff != "" {
			t.Error(diff)
		}
	}
}
