package inspect

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/modeltest"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// emptyFile makes a file to fetch to.
func emptyFile(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "t"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// A large tensor comes by several requests, a smaller one by one, and both as
// they are.
func TestFetch(t *testing.T) {
	large, small := pattern(inRanges+12), pattern(200_000)
	file := modeltest.Safetensors(t, nil,
		modeltest.Tensor{Name: "large", DType: "F32", Shape: []int64{inRanges/4 + 3}, Data: large},
		modeltest.Tensor{Name: "small", DType: "F32", Shape: []int64{50_000}, Data: small})
	src := counting(t, cartontest.New(map[string][]byte{"model/m.safetensors": file}, nil,
		cartontest.WithPlace(carton.PlaceBlob, "model/m.safetensors")))
	for _, c := range []struct {
		name     string
		want     []byte
		requests int
	}{{"large", large, 2}, {"small", small, 1}} {
		tensor, _, err := Find(t.Context(), src, c.name, Options{})
		if err != nil {
			t.Fatal(err)
		}
		ranges, read := len(src.ranges), src.read
		f := emptyFile(t)
		verified, err := Fetch(t.Context(), src, tensor, f, FetchOptions{Concurrency: 4})
		if verified || err != nil {
			t.Errorf("%s: got verified %v, %v", c.name, verified, err)
		}
		got, err := os.ReadFile(f.Name())
		if err != nil || !bytes.Equal(got, c.want) {
			t.Errorf("%s: got %d bytes, want %d, or others; %v", c.name, len(got), len(c.want), err)
		}
		ranges, read = len(src.ranges)-ranges, src.read-read
		if read != int64(len(c.want)) || ranges < c.requests || c.requests == 1 && ranges != 1 {
			t.Errorf("%s: got %d bytes by %d requests, want %d by %d", c.name, read, ranges, len(c.want), c.requests)
		}
	}
}

// A source that gives fewer bytes than a tensor has is no tensor.
func TestFetchOfTooLittle(t *testing.T) {
	content := make([]byte, 400_000)
	file := modeltest.Safetensors(t, nil,
		modeltest.Tensor{Name: "a", DType: "U8", Shape: []int64{200_000}, Data: content[:200_000]},
		modeltest.Tensor{Name: "b", DType: "U8", Shape: []int64{200_000}, Data: content[:200_000]})
	whole := cartontest.New(map[string][]byte{"model/m.safetensors": file}, nil, cartontest.WithPlace(carton.PlaceBlob, "model/m.safetensors"))
	tensor, _, err := Find(t.Context(), whole, "b", Options{})
	if err != nil {
		t.Fatal(err)
	}
	cut := cartontest.New(map[string][]byte{"model/m.safetensors": file[:300_000]}, nil, cartontest.WithPlace(carton.PlaceBlob, "model/m.safetensors"))
	if _, err := Fetch(t.Context(), cut, tensor, emptyFile(t), FetchOptions{}); err == nil {
		t.Error("got no error")
	}
}
