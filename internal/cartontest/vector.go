package cartontest

import (
	"bytes"
	"compress/zlib"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Vector is one file of pkg/carton/testdata/vectors; README.md there says what it
// looks like.
type Vector struct {
	Expect string // a class
	Kind   string // carton, manifest or links
	What   string
	Body   []byte
}

// Vectors reads the vectors of a folder, by the names of their files without
// ".vector".
func Vectors(t testing.TB, folder string) map[string]Vector {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.vector"))
	if err != nil || len(names) < 100 {
		t.Fatalf("got %d vectors, %v", len(names), err)
	}
	vectors := map[string]Vector{}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		vectors[strings.TrimSuffix(filepath.Base(name), ".vector")] = parseVector(t, b)
	}
	return vectors
}

func parseVector(t testing.TB, b []byte) (v Vector) {
	t.Helper()
	head, body, ok := bytes.Cut(b, []byte("\n\n"))
	if !ok {
		t.Fatal("no blank line behind the header")
	}
	v.Body = body
	for line := range strings.SplitSeq(string(head), "\n") {
		key, value, _ := strings.Cut(line, ": ")
		switch key {
		case "expect":
			v.Expect = value
		case "kind":
			v.Kind = value
		case "what":
			v.What = value
		case "compressed":
			r, err := zlib.NewReader(bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if v.Body, err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		default:
			t.Fatalf("unknown line %q", line)
		}
	}
	return v
}
