package safetensors

import (
	"io"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/jsonstream"
)

func TestLimitsOfTheParser(t *testing.T) {
	three := `{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},
		"__metadata__":{"k":"v"},
		"b":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},
		"c":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`
	for most, want := range map[int]string{3: "", 2: "over a limit of carton-oci: more than 2 tensors"} {
		p := &parser{json: jsonstream.New(strings.NewReader(three)), most: most, left: MaxKeptBytes}
		if err := p.header(&Header{}); (want == "") != (err == nil) || err != nil && err.Error() != want {
			t.Errorf("at most %d: got %v, want %q", most, err, want)
		}
	}
	long := io.MultiReader(strings.NewReader(`{"`), io.LimitReader(letters{}, jsonstream.MaxString+1), strings.NewReader(`":{}}`))
	p := &parser{json: jsonstream.New(long), most: 1, left: MaxKeptBytes}
	if err := p.header(&Header{}); err == nil || !strings.Contains(err.Error(), "a string is longer than") {
		t.Errorf("a long name: got %v", err)
	}
}

// TestKeptBytes: what a header says is bounded, whichever part says it.
func TestKeptBytes(t *testing.T) {
	shape := "[" + strings.Repeat("0,", 63) + "0]"
	for name, json := range map[string]string{
		"names":      `{"` + strings.Repeat("n", 900) + `":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`,
		"shapes":     `{"a":{"dtype":"U8","shape":` + shape + `,"data_offsets":[0,0]},"b":{"dtype":"U8","shape":` + shape + `,"data_offsets":[0,0]}}`,
		"metadata":   `{"__metadata__":{"k":"` + strings.Repeat("v", 900) + `"}}`,
		"keys of it": `{"__metadata__":{"` + strings.Repeat("k", 900) + `":""}}`,
	} {
		for left, want := range map[int]string{900: "take more than", 2000: ""} {
			p := &parser{json: jsonstream.New(strings.NewReader(json)), most: 2, left: left}
			err := p.header(&Header{})
			if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s, %d bytes: got %v, want %q", name, left, err, want)
			}
		}
	}
}

type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}
