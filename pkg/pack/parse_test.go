package pack_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/pack"
	"github.com/google/go-cmp/cmp"
)

func wantOptionError(t testing.TB, text string, err error, want string) {
	t.Helper()
	if !errors.Is(err, pack.ErrOptions) || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got %v, want an option's error with %q", text, err, want)
	}
}

func TestParseOpt(t *testing.T) {
	for text, want := range map[string]any{
		"k=4": int64(4), "k=-4": int64(-4), "k=0x10": int64(16), "k=1_000": int64(1000), "k=0.5": 0.5, "k=1e3": 1000.0, "k=true": true,
		"k=false": false, `k="4"`: "4", "k='true'": "true", "k=text": "text", "k=": "", "k=a=b": "a=b", "k=007": "007", "k=2020-01-01": "2020-01-01",
		"k=[1]": "[1]", "k={a=1}": "{a=1}", "k=4 # four": "4 # four", "k=True": "True", "k=1\nx=2": "1\nx=2", "k=99999999999999999999": "99999999999999999999",
	} {
		key, got, err := pack.ParseOpt(text)
		if err != nil || key != "k" || got != want {
			t.Errorf("%q: got %s, %#v, %v, want %#v", text, key, got, err, want)
		}
	}
	for _, text := range []string{"", "k", "=v"} {
		_, _, err := pack.ParseOpt(text)
		wantOptionError(t, text, err, "want KEY=VALUE")
	}
}

func TestParseSpec(t *testing.T) {
	for text, want := range map[string]string{
		"x:float32:[batch,3, 224]": `x float32 ["batch", 3, 224]`, "x:int64:[]": "x int64 []", "x:string:*": `x string "*"`,
		`x:uint8:["*","n"]`: `x uint8 ["*", "n"]`, "x:float64:same": `x float64 "same"`, "x:int8:[0]": "x int8 [0]",
	} {
		got, err := pack.ParseSpec(text)
		if err != nil || got.Name+" "+string(got.DType)+" "+got.Shape.String() != want {
			t.Errorf("%s: got %+v, %v, want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"x": "want NAME:DTYPE:SHAPE", "x:float32": "want NAME:DTYPE:SHAPE", ":float32:*": "want NAME:DTYPE:SHAPE", "x:float32:": "want NAME:DTYPE:SHAPE",
		"x:float16:*": "got the type float16", "x:nested:*": "got the type nested", "x:int8:[1": "want a ]", "x:int8:[-1]": "lengths of 0 or more",
		"x:int8:[1,]": "lengths of 0 or more", "x:int64:b,n": "want [b,n], or one symbol", "x:int64:3": "want [3]", "x:int64:(b,3)": "want [b,3]",
	} {
		_, err := pack.ParseSpec(text)
		wantOptionError(t, text, err, want)
	}
}

func TestParseTest(t *testing.T) {
	v := func(name, from string) pack.TestValue { return pack.TestValue{Name: name, From: from} }
	for _, c := range []struct {
		text    string
		example bool
		want    pack.Test
	}{
		{"t.safetensors", false, pack.Test{File: "t.safetensors"}},
		{"a,b.SafeTensors", true, pack.Test{File: "a,b.SafeTensors"}},
		{"input:x=x.npy", false, pack.Test{Inputs: []pack.TestValue{v("x", "x.npy")}}},
		{
			"name:one,input:x=a,b.npy,input:y:z=y.npy,expected:o=o=1.npy,description:Yes, it is", false,
			pack.Test{
				Name: "one", Description: "Yes, it is",
				Inputs: []pack.TestValue{v("x", "a,b.npy"), v("y:z", "y.npy")}, Outputs: []pack.TestValue{v("o", "o=1.npy")},
			},
		},
		{
			"input:x=@misc/p.png,output:y=y.npy", true,
			pack.Test{Inputs: []pack.TestValue{v("x", "@misc/p.png")}, Outputs: []pack.TestValue{v("y", "y.npy")}},
		},
	} {
		got, err := pack.ParseTest(c.text, c.example)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.text, diff)
		}
	}
	for text, want := range map[string]string{
		"x.npy": "want a .safetensors file, or parts", "": "want a .safetensors file, or parts", "input:x": "want input:NAME=FILE",
		"input:=x.npy": "want input:NAME=FILE", "input:x=": "want input:NAME=FILE", "input:x=a.npy,output:y=b.npy": "want expected:NAME=FILE",
	} {
		_, err := pack.ParseTest(text, false)
		wantOptionError(t, text, err, want)
	}
	_, err := pack.ParseTest("input:x=a.npy,expected:y=b.npy", true)
	wantOptionError(t, "an example", err, "want output:NAME=FILE")
}

// Whatever is written on a command line becomes options or an error, and what
// becomes options can be written into carton.toml.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"k=4", `k="a\nb"`, "k=nan", "x:float32:[batch,3]", "x:string:*", "input:x=x.npy,expected:y=y.npy", "model/a=https://h/x", "t.safetensors",
	} {
		f.Add(s)
	}
	dir := tree(f, map[string]string{"a": "x"})
	f.Fuzz(func(t *testing.T, text string) {
		opts := noop
		if key, value, err := pack.ParseOpt(text); err == nil {
			opts.Runner.Opts = map[string]any{key: value}
		}
		if s, err := pack.ParseSpec(text); err == nil {
			opts.Inputs = []carton.TensorSpec{s}
		}
		opts.ModelName, opts.ModelDescription = text, text
		if l, err := pack.ParseLink(text); err == nil && l.URL == "" {
			t.Errorf("got %+v, want a URL", l)
		}
		if test, err := pack.ParseTest(text, true); err == nil && test.File == "" && len(test.Inputs)+len(test.Outputs)+len(test.Name)+len(test.Description) == 0 &&
			!strings.HasPrefix(text, "name:") && !strings.HasPrefix(text, "description:") {
			t.Errorf("got an empty test")
		}
		c, err := pack.Open(t.Context(), []string{dir}, opts)
		if !utf8.ValidString(text) {
			if !errors.Is(err, pack.ErrOptions) {
				t.Errorf("got %v, want an option's error", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if c.Info.ModelName != text || c.Info.ModelDescription != text {
			t.Errorf("got the name %q, want %q", c.Info.ModelName, text)
		}
	})
}
