package inspect

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

func describe(t *testing.T, src carton.Source, opts Options) *Facts {
	t.Helper()
	f, err := Describe(t.Context(), src, opts)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestDescribe(t *testing.T) {
	src := cartontest.New(map[string][]byte{
		"model/1.safetensors":    safetensorsOf(0, entry{"a", "BF16", []int64{600}}, entry{"b", "F32", []int64{600}}),
		"model/2.safetensors":    safetensorsOf(0, entry{"a", "BF16", []int64{700}}, entry{"b", "I64", []int64{700}}),
		"model/copy.safetensors": safetensorsOf(0, entry{"a", "BF16", []int64{700}}, entry{"b", "I64", []int64{700}}),
		"model/blobs/ab":         safetensorsOf(0, entry{"c", "F8_E4M3", []int64{5}}),
		"model/x.onnx":           make([]byte, 5000),
		"model/bad.safetensors":  {1},
		"misc/m.safetensors":     safetensorsOf(0, entry{"a", "F64", []int64{600}}),
	}, map[string]string{"model/3.safetensors": "blobs/ab"})
	got := describe(t, src, Options{})
	want := &Facts{
		Format: "safetensors", Formats: []Share{{"safetensors", 10930}, {"onnx", 5000}},
		Precision:  "int64,bfloat16,float32,float8_e4m3",
		Precisions: []Share{{"int64", 5600}, {"bfloat16", 2600}, {"float32", 2400}, {"float8_e4m3", 5}},
		Parameters: 600*2 + 700*2 + 5,
		Notes:      got.Notes,
	}
	if diff := cmp.Diff(want, got, noErr); diff != "" {
		t.Error(diff)
	}
	if len(got.Notes) != 1 || got.Notes[0].Member != "model/bad.safetensors" {
		t.Errorf("got the notes %v", got.Notes)
	}
}

// Sizes and headers that lie together make no sum that is wrong.
func TestSumsOfLies(t *testing.T) {
	files, large := map[string][]byte{}, map[string]int64{}
	for i := range 9 {
		path := "model/" + itoa(i) + ".safetensors"
		head, size := headOf(0, entry{"w" + itoa(i), "U8", []int64{1 << 60}})
		files[path], large[path] = head, int64(len(head))+size
	}
	a := counting(t, cartontest.New(files, nil))
	a.large = large
	if f := describe(t, a, Options{}); f.Parameters != math.MaxInt64 || f.Precisions[0].Bytes != math.MaxInt64 {
		t.Errorf("got %+v", f)
	}
}

func TestNothingToDescribe(t *testing.T) {
	got := describe(t, cartontest.New(map[string][]byte{"model/a.json": {1}, "misc/a.safetensors": {1}}, nil), Options{})
	if diff := cmp.Diff(&Facts{Parameters: -1}, got); diff != "" {
		t.Error(diff)
	}
}

// A carton has one config whatever its form.
func TestFactsDoNotDependOnWhereMembersAre(t *testing.T) {
	files := map[string][]byte{
		weights: three(9), "model/long.safetensors": safetensorsOf(3*headerAtOnce, entry{"w", "F16", []int64{70}}),
		"model/bad.safetensors": append(three(9), 0), "model/empty.safetensors": nil,
	}
	var paths []string
	for path := range files {
		paths = append(paths, path)
	}
	want := describe(t, cartontest.New(files, nil), Options{Through: true})
	for name, o := range map[string]cartontest.Option{
		"compressed": dear(paths...), "one bundle": cartontest.WithBundle(1, paths...),
		"linked": cartontest.WithPlace(carton.PlaceLinked, paths...),
	} {
		if diff := cmp.Diff(want, describe(t, cartontest.New(files, nil, o), Options{Through: true}), noErr); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestParamSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 1: "1", 999: "999", 1000: "1K", 1049: "1K", 1050: "1.1K", 376_940: "376.9K", 999_949: "999.9K", 999_950: "1M",
		1_500_000: "1.5M", 8_030_261_248: "8B", 999_949_999_999: "999.9B", 999_950_000_000: "1T", 1_000_000_000_000_000: "1000T",
		9_223_372_036_854_775_807: "9223372T",
	} {
		if got := ParamSize(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}
