package inspect

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// different writes a difference a line a thing.
func different(t *testing.T, a, b carton.Source) string {
	t.Helper()
	d, err := Diff(t.Context(), a, b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, f := range d.Info {
		fmt.Fprintf(&out, "%s: %s > %s\n", f.Field, f.A, f.B)
	}
	for _, m := range d.Added {
		fmt.Fprintf(&out, "+ %s\n", m.Path)
	}
	for _, m := range d.Removed {
		fmt.Fprintf(&out, "- %s\n", m.Path)
	}
	for _, r := range d.Renamed {
		fmt.Fprintf(&out, "%s > %s\n", r.From, r.To)
	}
	for _, c := range d.Changed {
		fmt.Fprintf(&out, "! %s %v\n", c.A.Path, c.Compared)
		for _, x := range c.Tensors {
			fmt.Fprintf(&out, "  %s %s\n", x.Kind, eitherOf(x).Name)
		}
	}
	return out.String() + noteText(d.Notes)
}

func TestDiff(t *testing.T) {
	a := cartontest.New(map[string][]byte{
		"model/same":             []byte("same"),
		"model/gone":             []byte("gone"),
		"model/old/1":            []byte("moved"),
		"model/old/2":            []byte("moved"),
		"model/bytes":            []byte("a"),
		"model/t.safetensors":    safetensorsOf(0, entry{"kept", "F32", []int64{2}}, entry{"shape", "F32", []int64{2, 3}}, entry{"type", "F32", []int64{4}}, entry{"gone", "F32", []int64{1}}),
		"model/same.safetensors": three(9),
		"model/bad.safetensors":  {1},
	}, map[string]string{"model/link": "same"})
	other := three(9)
	other[len(other)-1]++
	b := cartontest.New(map[string][]byte{
		"model/same":             []byte("same"),
		"model/come":             []byte("come"),
		"model/new/1":            []byte("moved"),
		"model/new/2":            []byte("moved"),
		"model/new/3":            []byte("moved"),
		"model/bytes":            []byte("b"),
		"model/t.safetensors":    safetensorsOf(0, entry{"kept", "F32", []int64{2}}, entry{"shape", "F32", []int64{3, 2}}, entry{"type", "I64", []int64{4}}, entry{"come", "F32", []int64{1}}),
		"model/same.safetensors": other,
		"model/bad.safetensors":  {1, 2},
		"model/link":             []byte("same"),
	}, nil)
	want := `+ model/come
+ model/new/3
- model/gone
model/old/1 > model/new/1
model/old/2 > model/new/2
! model/bad.safetensors false
! model/bytes false
! model/link false
! model/same.safetensors true
! model/t.safetensors true
  added come
  removed gone
  reshaped shape
  retyped type
`
	got := different(t, a, b)
	if rest, ok := strings.CutPrefix(got, want); !ok || strings.Count(rest, "model/bad.safetensors: ") != 2 {
		t.Error(cmp.Diff(want, got))
	}
}

// That a symlink became a file shows in no hash.
func TestASymlinkThatBecameAFile(t *testing.T) {
	a := cartontest.New(map[string][]byte{"model/f": []byte("f"), "model/x": []byte("1")}, map[string]string{"model/l": "f"})
	b := cartontest.New(map[string][]byte{"model/f": []byte("f"), "model/x": []byte("2"), "model/l": []byte("f")}, nil)
	if got, want := different(t, a, b), "! model/l false\n! model/x false\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestDiffOfTheSameAsksForNothing(t *testing.T) {
	a := counting(t, cartontest.New(map[string][]byte{weights: three(9)}, nil, cartontest.WithMembersError(errors.New("was asked"))))
	if got := different(t, a, a); got != "" || len(a.opens)+len(a.ranges) != 0 {
		t.Errorf("got %s after %v, %v", got, a.opens, a.ranges)
	}
}

const someInfo = `spec_version = 1
model_name = "a"
license = "MIT"
required_platforms = ["x86_64-unknown-linux-gnu"]
[runner]
runner_name = "python"
required_framework_version = "=3.11"
[runner.opts]
n = 1
s = "x"
[[input]]
name = "x"
dtype = "float32"
shape = [1, "n"]
[[self_test]]
inputs = { x = "@tensor_data/x" }
[categories]
"model/a.py" = "weight"
`

func TestDiffOfFields(t *testing.T) {
	a := cartontest.New(map[string][]byte{carton.InfoName: []byte(someInfo)}, nil)
	b := cartontest.New(map[string][]byte{carton.InfoName: []byte(strings.NewReplacer(
		`"a"`, `"b"`, "license = \"MIT\"\n", "", "\nn = 1", "\nn = 2", `"float32"`, `"int8"`, `[1, "n"]`, `"*"`,
		`"@tensor_data/x"`, `"@tensor_data/y"`, "[runner]", "[runner]\nrunner_compat_version = 3", `"weight"`, `"code"`,
	).Replace(someInfo))}, nil)
	want := `categories.model/a.py: "weight" > "code"
input.x.dtype: "float32" > "int8"
input.x.shape: [1, "n"] > "*"
license: "MIT" > ` + `
model_name: "a" > "b"
runner.opts.n: 1 > 2
runner.runner_compat_version:  > 3
self_test.1.inputs.x: "@tensor_data/x" > "@tensor_data/y"
! carton.toml false
`
	if diff := cmp.Diff(want, different(t, a, b)); diff != "" {
		t.Error(diff)
	}
	spaced := cartontest.New(map[string][]byte{carton.InfoName: []byte("\n" + someInfo)}, nil)
	if got := different(t, a, spaced); got != "! carton.toml false\n" {
		t.Errorf("other bytes, same fields: got\n%s", got)
	}
	broken := cartontest.New(map[string][]byte{carton.InfoName: []byte("spec_version = 1\n")}, nil)
	if got := different(t, a, broken); !strings.Contains(got, "carton.toml: of the second carton: ") {
		t.Errorf("broken: got\n%s", got)
	}
}

func TestDiffOfASourceThatFails(t *testing.T) {
	broken := errors.New("broken")
	a := cartontest.New(map[string][]byte{weights: three(9)}, nil)
	b := cartontest.New(map[string][]byte{weights: three(10)}, nil)
	if _, err := Diff(t.Context(), a, &failingRange{Source: b, err: broken}, Options{}); !errors.Is(err, broken) {
		t.Errorf("got %v, want the source's error", err)
	}
	b = cartontest.New(map[string][]byte{weights: three(10)}, nil, cartontest.WithMembersError(broken))
	if _, err := Diff(t.Context(), a, b, Options{}); !errors.Is(err, broken) || !strings.Contains(err.Error(), "second carton") {
		t.Errorf("got %v, want the source's error", err)
	}
}

// eitherOf returns the tensor that differs, from whichever carton has it.
func eitherOf(c TensorChange) *Tensor {
	if c.B != nil {
		return c.B
	}
	return c.A
}
