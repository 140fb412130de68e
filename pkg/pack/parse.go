package pack

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// What is written on a command line. Every error here is [ErrOptions].

// ParseOpt reads a runner's option, "KEY=VALUE". The value is an integer, a float
// or a boolean where TOML has it so (4, 0.5, true); in double quotes it is always
// a string, and so is everything else.
func ParseOpt(text string) (key string, value any, err error) {
	key, word, ok := strings.Cut(text, "=")
	if !ok || key == "" {
		return "", nil, optionsf("got %s, want KEY=VALUE", errtext.Quote(text))
	}
	var doc map[string]any
	if !strings.ContainsAny(word, "\r\n#") {
		if _, err := toml.Decode("v = "+word, &doc); err == nil && len(doc) == 1 {
			switch v := doc["v"].(type) {
			case int64, float64, bool, string:
				return key, v, nil
			}
		}
	}
	return key, word, nil
}

// ParseSpec reads a declaration of an input or output, "NAME:DTYPE:SHAPE". The
// shape is a list in brackets of lengths and symbols, "[batch,3,224]"; one symbol
// for all of it, or "*" for any.
func ParseSpec(text string) (carton.TensorSpec, error) {
	name, rest, ok := strings.Cut(text, ":")
	dtype, shape, both := strings.Cut(rest, ":")
	if !ok || !both || name == "" || shape == "" {
		return carton.TensorSpec{}, optionsf("got %s, want NAME:DTYPE:SHAPE, as in x:float32:[batch,3]",
			errtext.Quote(text))
	}
	s := carton.TensorSpec{Name: name, DType: carton.DType(dtype)}
	if !declarable(s.DType) {
		return s, optionsf("got the type %s, want float32, float64, string, int8 to int64 or uint8 to uint64",
			errtext.Quote(dtype))
	}
	list, bracket := strings.CutPrefix(shape, "[")
	if !bracket && shape != "*" && !symbolName.MatchString(shape) {
		return s, optionsf("got the shape %s, want [%s], or one symbol for all of it",
			errtext.Quote(shape), strings.Trim(shape, "()[] "))
	}
	if !bracket {
		s.Shape.Symbol = shape
		return s, nil
	}
	list, bracket = strings.CutSuffix(list, "]")
	if !bracket {
		return s, optionsf("got the shape %s, want a ] at its end", errtext.Quote(shape))
	}
	s.Shape.Dims = []carton.Dim{}
	if strings.TrimSpace(list) == "" {
		return s, nil // a scalar
	}
	for word := range strings.SplitSeq(list, ",") {
		word = strings.Trim(strings.TrimSpace(word), `"`)
		n, err := strconv.ParseInt(word, 10, 64)
		switch {
		case err == nil && n >= 0:
			s.Shape.Dims = append(s.Shape.Dims, carton.Dim{Size: n})
		case err == nil || word == "":
			return s, optionsf("got the shape %s, want lengths of 0 or more and symbols", errtext.Quote(shape))
		default:
			s.Shape.Dims = append(s.Shape.Dims, carton.Dim{Symbol: word})
		}
	}
	return s, nil
}

func declarable(d carton.DType) bool { return d == carton.String || d.Size() > 0 }

// testItem begins a part of a test that is written out.
var testItem = regexp.MustCompile(`^(input|expected|output|name|description):`)

// ParseTest reads a self test, or an example: a .safetensors file (see [Test]
// File), or parts with commas between them,
//
//	input:x=x.npy,input:y=y.npy,expected:out=out.npy,name:first
//
// with "output" in the place of "expected" in an example. A comma that no such
// word follows belongs to the part before it.
func ParseTest(text string, example bool) (Test, error) {
	if !testItem.MatchString(text) {
		if strings.HasSuffix(strings.ToLower(text), ".safetensors") {
			return Test{File: text}, nil
		}
		return Test{}, optionsf("got %s, want a .safetensors file, or parts like input:x=x.npy", errtext.Quote(text))
	}
	outputs := "expected"
	if example {
		outputs = "output"
	}
	var t Test
	for _, item := range testItems(text) {
		kind, rest, _ := strings.Cut(item, ":")
		switch kind {
		case "name":
			t.Name = rest
			continue
		case "description":
			t.Description = rest
			continue
		}
		name, from, ok := strings.Cut(rest, "=")
		if !ok || name == "" || from == "" {
			return t, optionsf("got %s, want %s:NAME=FILE", errtext.Quote(item), kind)
		}
		switch v := (TestValue{Name: name, From: from}); kind {
		case "input":
			t.Inputs = append(t.Inputs, v)
		case outputs:
			t.Outputs = append(t.Outputs, v)
		default:
			return t, optionsf("got %s, want %s:NAME=FILE", errtext.Quote(item), outputs)
		}
	}
	return t, nil
}

// testItems cuts a test at the commas that a part follows.
func testItems(text string) []string {
	var items []string
	for word := range strings.SplitSeq(text, ",") {
		if len(items) > 0 && !testItem.MatchString(word) {
			items[len(items)-1] += "," + word
			continue
		}
		items = append(items, word)
	}
	return items
}
