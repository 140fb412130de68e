package carton_test

import (
	"bytes"
	"compress/zlib"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

var update = flag.Bool("update", false, "write testdata/vectors anew")

const (
	vectorFolder = "testdata/vectors"
	// vectorMost is the size in bytes of the largest body that becomes a vector:
	// bombs stay in the tests that make them.
	vectorMost = 1 << 20
	// vectorPlain is the size from which a body is compressed.
	vectorPlain = 4 << 10
)

// vector is one file of testdata/vectors; README.md there says what it looks
// like.
type vector struct {
	expect string // a class
	kind   string // carton, manifest or links
	what   string
	body   []byte
}

// vectorClasses are the classes, by the error that stands for each.
var vectorClasses = map[string]error{
	"success": nil, "format": carton.ErrFormat, "version": carton.ErrVersion, "checksum": carton.ErrChecksum,
	"insecure-path": carton.ErrInsecurePath, "limit": carton.ErrLimit,
}

func classOf(t testing.TB, want error) string {
	t.Helper()
	for name, err := range vectorClasses {
		if errors.Is(want, err) {
			return name
		}
	}
	t.Fatalf("no class for %v", want)
	return ""
}

// vectors are what the files hold: every zip, MANIFEST and LINKS that the tests
// of this package have with one thing wrong, and the odd ones that are right.
func vectors(t testing.TB) []vector {
	list := []vector{{"success", "carton", "nothing is wrong", good().bytes()}}
	for _, c := range brokenZips {
		list = append(list, vector{classOf(t, c.want), "carton", c.name, c.build(t)})
	}
	for name, change := range oddZips {
		z := good()
		change(t, z)
		list = append(list, vector{"success", "carton", "odd: " + name, z.bytes()})
	}
	for name, c := range brokenManifests {
		list = append(list, vector{classOf(t, c.want), "manifest", name, []byte(c.raw)})
	}
	for _, c := range brokenLinks {
		list = append(list, vector{classOf(t, c.kind), "links", c.name, []byte(c.doc)})
	}
	small := list[:0]
	for _, v := range list {
		if len(v.body) <= vectorMost {
			small = append(small, v)
		}
	}
	return small
}

// fileName names the file for what is wrong in it.
func (v vector) fileName() string {
	var b strings.Builder
	for _, r := range v.kind + " " + v.what {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case strings.ContainsRune("./\\=<>", r): // "name ." and "name .." are two
			fmt.Fprintf(&b, "%02x", r)
		case !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return strings.Trim(b.String(), "-") + ".vector"
}

func (v vector) file(t testing.TB) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "expect: %s\nkind: %s\nwhat: %s\n", v.expect, v.kind, v.what)
	if len(v.body) < vectorPlain {
		fmt.Fprintf(&b, "\n%s", v.body)
		return b.Bytes()
	}
	b.WriteString("compressed: zlib\n\n")
	w, err := zlib.NewWriterLevel(&b, zlib.BestCompression)
	if err == nil {
		_, err = w.Write(v.body)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func parseVector(t testing.TB, b []byte) (v vector) {
	t.Helper()
	head, body, ok := bytes.Cut(b, []byte("\n\n"))
	if !ok {
		t.Fatal("no blank line behind the header")
	}
	v.body = body
	for line := range strings.SplitSeq(string(head), "\n") {
		key, value, _ := strings.Cut(line, ": ")
		switch key {
		case "expect":
			v.expect = value
		case "kind":
			v.kind = value
		case "what":
			v.what = value
		case "compressed":
			r, err := zlib.NewReader(bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if v.body, err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		default:
			t.Fatalf("unknown line %q", line)
		}
	}
	return v
}

// The files are what the tests of this package are made of, no more, no less.
// What they hold is compared, not how it was compressed.
func TestVectorsAreUpToDate(t *testing.T) {
	want := map[string]vector{}
	for _, v := range vectors(t) {
		if other, ok := want[v.fileName()]; ok {
			t.Fatalf("%q and %q have one name", v.what, other.what)
		}
		want[v.fileName()] = v
	}
	names, err := filepath.Glob(filepath.Join(vectorFolder, "*.vector"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if _, ok := want[filepath.Base(name)]; ok {
			continue
		}
		if *update {
			os.Remove(name)
		} else {
			t.Errorf("%s is of no test", name)
		}
	}
	for base, v := range want {
		name := filepath.Join(vectorFolder, base)
		b, err := os.ReadFile(name)
		if err == nil {
			got := parseVector(t, b)
			if got.expect == v.expect && got.kind == v.kind && got.what == v.what && bytes.Equal(got.body, v.body) {
				continue
			}
		}
		if !*update {
			t.Errorf("%s is missing or another: go test -run Vectors -update", name)
		} else if err := os.WriteFile(name, v.file(t), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Each is read as its header says, from the file alone.
func TestVectors(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(vectorFolder, "*.vector"))
	if err != nil || len(names) < 100 {
		t.Fatalf("got %d vectors, %v", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".vector"), func(t *testing.T) {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			v := parseVector(t, b)
			want, ok := vectorClasses[v.expect]
			if !ok {
				t.Fatalf("unknown class %q", v.expect)
			}
			if err := v.read(t); !errors.Is(err, want) || (err == nil) != (want == nil) {
				t.Errorf("got %v, want %s", err, v.expect)
			}
		})
	}
}

// read reads a vector to its end.
func (v vector) read(t testing.TB) error {
	switch v.kind {
	case "carton":
		src, err := openBoth(t, v.body)
		if err != nil {
			return err
		}
		return readMembers(t.Context(), src)
	case "manifest":
		_, err := carton.ParseManifest(v.body)
		return err
	case "links":
		_, err := carton.ParseLinks(v.body)
		return err
	}
	t.Fatalf("unknown kind %q", v.kind)
	return nil
}
