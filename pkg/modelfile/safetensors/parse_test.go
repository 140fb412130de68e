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
	for most, want := range map[int]string{3: "", 2: "more than 2 tensors"} {
		p := &parser{json: jsonstream.New(strings.NewReader(three)), most: most}
		if err := p.header(&Header{}); (want == "") != (err == nil) || err != nil && err.Error() != want {
			t.Errorf("at most %d: got %v, want %q", most, err, want)
		}
	}
	long := io.MultiReader(strings.NewReader(`{"`), io.LimitReader(letters{}, jsonstream.MaxString+1), strings.NewReader(`":{}}`))
	p := &parser{json: jsonstream.New(long), most: 1}
	if err := p.header(&Header{}); err == nil || !strings.Contains(err.Error(), "a string is longer than") {
		t.Errorf("a long name: got %v", err)
	}
}

type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}
