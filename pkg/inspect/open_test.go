package inspect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

const weights = "model/m.safetensors"

// three is a file of three tensors; the middle one begins at byte 40 of the
// data.
func three(last int64) []byte {
	return safetensorsOf(0, entry{"a", "F32", []int64{10}}, entry{"b", "I64", []int64{2, 5}}, entry{"c", "U8", []int64{last}})
}

func find(t *testing.T, src carton.Source, name string, opts Options) *Tensor {
	t.Helper()
	tensor, notes, err := Find(t.Context(), src, name, opts)
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, noteText(notes))
	}
	return tensor
}

func TestATensorAloneIsARange(t *testing.T) {
	b := three(500_000)
	a := counting(t, cartontest.New(map[string][]byte{weights: b}, nil))
	tensor := find(t, a, "b", Options{})
	a.ranges = nil
	got, verified := elements(t, a, tensor)
	if verified || !bytes.Equal(got, pattern(120)[40:]) {
		t.Errorf("verified: %v, got % x", verified, got)
	}
	start := len(b) - 500_120 + 40
	if want := []string{weights + " " + itoa(start) + "+80"}; !cmp.Equal(a.ranges, want) || len(a.opens) != 0 {
		t.Errorf("asked for %v and %v, want %v", a.ranges, a.opens, want)
	}
}

// What is little, and what can only be read forward, is read whole and so
// verified.
func TestWhatIsReadWholeIsVerified(t *testing.T) {
	for name, src := range map[string]*cartontest.Source{
		"little else":      cartontest.New(map[string][]byte{weights: three(60_000)}, nil),
		"compressed":       cartontest.New(map[string][]byte{weights: three(500_000)}, nil, dear(weights)),
		"in a bundle":      cartontest.New(map[string][]byte{weights: three(500_000)}, nil, cartontest.WithBundle(1, weights)),
		"behind a symlink": cartontest.New(map[string][]byte{"model/blob": three(9)}, map[string]string{weights: "blob"}),
	} {
		a := counting(t, src)
		for _, which := range []string{"a", "b", "c"} {
			tensor := find(t, a, which, Options{})
			got, verified := elements(t, a, tensor)
			if want := pattern(1 << 20)[map[string]int{"a": 0, "b": 40, "c": 120}[which]:][:tensor.Bytes]; !verified || !bytes.Equal(got, want) {
				t.Errorf("%s: %s: verified: %v, got %d bytes", name, which, verified, len(got))
			}
		}
	}
}

func TestVerifiedMeansVerified(t *testing.T) {
	b := three(60_000)
	for name, spoil := range map[string]func([]byte) []byte{
		"the last byte":           func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"cut":                     func(b []byte) []byte { return b[:len(b)-1] },
		"longer":                  func(b []byte) []byte { return append(b, 0) },
		"another header":          func(b []byte) []byte { return bytes.Replace(b, []byte(`"b":`), []byte(`"x":`), 1) },
		"a header that is broken": func(b []byte) []byte { return bytes.Replace(b, []byte(`{`), []byte(`[`), 1) },
		"nothing":                 func([]byte) []byte { return nil },
	} {
		hook := func(_ string, _ int, r io.Reader) (io.Reader, error) {
			all, err := io.ReadAll(r)
			return bytes.NewReader(spoil(all)), err
		}
		src := cartontest.New(map[string][]byte{weights: bytes.Clone(b)}, nil, cartontest.WithOpen(hook))
		tensor := find(t, src, "b", Options{})
		r, _, err := Open(t.Context(), src, tensor)
		if err == nil {
			_, err = io.ReadAll(r)
		}
		if !errors.Is(err, carton.ErrChecksum) {
			t.Errorf("%s: got %v, want ErrChecksum", name, err)
		}
		if n := src.Unclosed(); r == nil && n != 0 {
			t.Errorf("%s: %d readers are open", name, n)
		}
	}
}

// A header that was read from a range and is a lie is found out when the member
// is read whole: its hash is right, but it does not say what was said.
func TestAHeaderThatWasALie(t *testing.T) {
	lie := safetensorsOf(0, entry{"a", "F32", []int64{10}}, entry{"b", "F64", []int64{2, 5}}, entry{"c", "U8", []int64{9}})
	src := cartontest.New(map[string][]byte{weights: three(9)}, nil)
	tensor := find(t, &lying{src, lie}, "b", Options{})
	if tensor.DType != "F64" {
		t.Fatalf("got %+v", tensor)
	}
	if _, _, err := Open(t.Context(), &lying{src, lie}, tensor); !errors.Is(err, carton.ErrChecksum) {
		t.Errorf("got %v, want ErrChecksum", err)
	}
}

func TestTensorsOfTensorData(t *testing.T) {
	files := map[string][]byte{
		"tensor_data/index.toml": []byte(dataIndex), "tensor_data/x.bin": pattern(24), "tensor_data/words.toml": []byte("data = [\"w\"]\n"),
	}
	src := cartontest.New(files, nil)
	if got, verified := elements(t, src, find(t, src, "x", Options{})); !verified || !bytes.Equal(got, pattern(24)) {
		t.Errorf("verified: %v, got % x", verified, got)
	}
	for name, want := range map[string]string{"words": "cat SOURCE tensor_data/words.toml", "both": "it is made of 'x, words'"} {
		_, _, err := Open(t.Context(), src, find(t, src, name, Options{}))
		if !errors.Is(err, ErrElements) || !strings.Contains(fmt.Sprint(hint.Of(err)), want) {
			t.Errorf("%s: got %v with %q, want ErrElements and %q", name, err, hint.Of(err), want)
		}
	}
	// A size that nobody knew before.
	files["tensor_data/x.bin"] = pattern(25)
	src = cartontest.New(files, nil, cartontest.WithUnknownSize("tensor_data/x.bin"))
	r, _, err := Open(t.Context(), src, find(t, src, "x", Options{}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); !errors.Is(err, carton.ErrFormat) {
		t.Errorf("a file that is too long: got %v, want ErrFormat", err)
	}
}

func TestTensorsWithoutElements(t *testing.T) {
	b := safetensorsOf(0, entry{"none", "F32", []int64{3, 0}}, entry{"more", "U8", []int64{100_000}})
	a := counting(t, cartontest.New(map[string][]byte{weights: b}, nil))
	tensor := find(t, a, "none", Options{})
	a.ranges = nil
	if got, _ := elements(t, a, tensor); len(got) != 0 || len(a.ranges) != 0 {
		t.Errorf("got %d bytes, asked for %v", len(got), a.ranges)
	}
}

func TestEmptyTensorsAreVerifiedToo(t *testing.T) {
	b := safetensorsOf(0, entry{"none", "F32", []int64{3, 0}}, entry{"more", "U8", []int64{100}})
	src := cartontest.New(map[string][]byte{weights: b}, nil)
	if got, verified := elements(t, src, find(t, src, "none", Options{})); len(got) != 0 || !verified {
		t.Errorf("got %d bytes, verified: %v", len(got), verified)
	}
}
