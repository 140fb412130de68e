package carton_test

import (
	"bytes"
	"compress/zlib"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
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
func vectors(t testing.TB) []cartontest.Vector {
	list := []cartontest.Vector{{Expect: "success", Kind: "carton", What: "nothing is wrong", Body: good().bytes()}}
	for _, c := range brokenZips {
		list = append(list, cartontest.Vector{Expect: classOf(t, c.want), Kind: "carton", What: c.name, Body: c.build(t)})
	}
	for name, change := range oddZips {
		z := good()
		change(t, z)
		list = append(list, cartontest.Vector{Expect: "success", Kind: "carton", What: "odd: " + name, Body: z.bytes()})
	}
	for name, c := range brokenManifests {
		list = append(list, cartontest.Vector{Expect: classOf(t, c.want), Kind: "manifest", What: name, Body: []byte(c.raw)})
	}
	for _, c := range brokenLinks {
		list = append(list, cartontest.Vector{Expect: classOf(t, c.kind), Kind: "links", What: c.name, Body: []byte(c.doc)})
	}
	small := list[:0]
	for _, v := range list {
		if len(v.Body) <= vectorMost {
			small = append(small, v)
		}
	}
	return small
}

// fileName names the file for what is wrong in it, without ".vector".
func fileName(v cartontest.Vector) string {
	var b strings.Builder
	for _, r := range v.Kind + " " + v.What {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case strings.ContainsRune("./\\=<>", r): // "name ." and "name .." are two
			fmt.Fprintf(&b, "%02x", r)
		case !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return strings.Trim(b.String(), "-")
}

func fileOf(t testing.TB, v cartontest.Vector) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "expect: %s\nkind: %s\nwhat: %s\n", v.Expect, v.Kind, v.What)
	if len(v.Body) < vectorPlain {
		fmt.Fprintf(&b, "\n%s", v.Body)
		return b.Bytes()
	}
	b.WriteString("compressed: zlib\n\n")
	w, err := zlib.NewWriterLevel(&b, zlib.BestCompression)
	if err == nil {
		_, err = w.Write(v.Body)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The files are what the tests of this package are made of, no more, no less.
// What they hold is compared, not how it was compressed.
func TestVectorsAreUpToDate(t *testing.T) {
	want := map[string]cartontest.Vector{}
	for _, v := range vectors(t) {
		if other, ok := want[fileName(v)]; ok {
			t.Fatalf("%q and %q have one name", v.What, other.What)
		}
		want[fileName(v)] = v
	}
	have := cartontest.Vectors(t, vectorFolder)
	for base := range have {
		if _, ok := want[base]; ok {
			continue
		}
		if *update {
			os.Remove(filepath.Join(vectorFolder, base+".vector"))
		} else {
			t.Errorf("%s is of no test", base)
		}
	}
	for base, v := range want {
		got := have[base]
		if got.Expect == v.Expect && got.Kind == v.Kind && got.What == v.What && bytes.Equal(got.Body, v.Body) {
			continue
		}
		if !*update {
			t.Errorf("%s is missing or another: go test -run Vectors -update", base)
		} else if err := os.WriteFile(filepath.Join(vectorFolder, base+".vector"), fileOf(t, v), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Each is read as its header says, from the file alone.
func TestVectors(t *testing.T) {
	for name, v := range cartontest.Vectors(t, vectorFolder) {
		t.Run(name, func(t *testing.T) {
			want, ok := vectorClasses[v.Expect]
			if !ok {
				t.Fatalf("unknown class %q", v.Expect)
			}
			if err := readVector(t, v); !errors.Is(err, want) || (err == nil) != (want == nil) {
				t.Errorf("got %v, want %s", err, v.Expect)
			}
		})
	}
}

// readVector reads a vector to its end.
func readVector(t testing.TB, v cartontest.Vector) error {
	switch v.Kind {
	case "carton":
		src, err := openBoth(t, v.Body)
		if err != nil {
			return err
		}
		return readMembers(t.Context(), src)
	case "manifest":
		_, err := carton.ParseManifest(v.Body)
		return err
	case "links":
		_, err := carton.ParseLinks(v.Body)
		return err
	}
	t.Fatalf("unknown kind %q", v.Kind)
	return nil
}
