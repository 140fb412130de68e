package zipdir_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/modeltest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/internal/zipdir"
)

var (
	plain = zipdir.Options{MaxEntries: 100_000, MaxDirectoryBytes: 1 << 20}
	// all is what any caller allows.
	all = zipdir.Options{
		MaxEntries: 100_000, MaxDirectoryBytes: 1 << 20, Symlinks: true,
		Methods: []zipdir.Method{zipdir.Stored, zipdir.Deflate, zipdir.Zstd},
	}
)

// check reads the directory and every local header.
func check(b []byte, opts zipdir.Options) (*zipdir.Directory, error) {
	r := bytes.NewReader(b)
	d, err := zipdir.Read(r, int64(len(b)), opts)
	if err == nil {
		err = d.Check(r)
	}
	return d, err
}

// zipOf is a zip of empty files with such names, as Go writes it.
func zipOf(t testing.TB, comment string, names ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range names {
		if _, err := w.CreateHeader(&zip.FileHeader{Name: name, Comment: comment}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const cartonsVectors = "../../pkg/carton/testdata/vectors"

// ofTheCarton are the vectors whose zip is right, but not what it holds: rules of
// MANIFEST, of names, of symlinks and of content are pkg/carton's.
var ofTheCarton = regexp.MustCompile(`MANIFEST|LINKS|symlink|manifest in lower|only in|differ in|component of|name of 1|without members|zstd window`)

// TestHostileZips: every zip that pkg/carton refuses for the zip's sake is refused
// here, whatever is allowed.
func TestHostileZips(t *testing.T) {
	refused := 0
	for name, v := range cartontest.Vectors(t, cartonsVectors) {
		if v.Kind != "carton" || v.Expect == "success" || v.Expect == "checksum" {
			continue
		}
		for _, opts := range []zipdir.Options{plain, all} {
			_, err := check(v.Body, opts)
			var broken *zipdir.Error
			switch {
			case err == nil && ofTheCarton.MatchString(v.What):
			case !errors.As(err, &broken) || (v.Expect == "limit") != errors.Is(err, zipdir.ErrLimit) && !ofTheCarton.MatchString(v.What):
				t.Errorf("%s: got %v, want it refused", name, err)
			case !errtext.IsPrintable(err.Error()):
				t.Errorf("%s: %q is no line for a terminal", name, err.Error())
			default:
				refused++
			}
		}
	}
	if refused < 200 {
		t.Errorf("%d were refused", refused)
	}
}

// TestOddZips: what is right though odd is read, but for what must be asked for.
func TestOddZips(t *testing.T) {
	for name, v := range cartontest.Vectors(t, cartonsVectors) {
		if v.Kind != "carton" || v.Expect != "success" {
			continue
		}
		if _, err := check(v.Body, all); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := check(v.Body, plain); (err == nil) == strings.Contains(name, "zstd") {
			t.Errorf("%s, with less allowed: %v", name, err)
		}
	}
}

// TestPlainNames is the rule for names where a caller has none.
func TestPlainNames(t *testing.T) {
	for want, names := range map[string][]string{
		"":                          {"a", "A", "d/", "d/e", "x/y/", "x/", strings.Repeat("x", zipdir.MaxName)},
		"name occurs twice":         {"a", "a"},
		"a: name occurs twice":      {"a", "a/"},
		"lies below a, which is":    {"a", "a/b"},
		"is a file and also the":    {"a/b/c", "a/b"},
		"empty name":                {"/"},
		"not clean":                 {"x/../../a"},
		"want at most 4096":         {strings.Repeat("x", zipdir.MaxName+1)},
		"name holds a backslash":    {`a\b`},
		"the control character U+0": {"a\nb"},
	} {
		_, err := check(zipOf(t, "", names...), plain)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	own := plain
	own.Name = func(name string, folder bool) error {
		return fmt.Errorf("%s %v", name, folder)
	}
	if _, err := check(zipOf(t, "", "a/"), own); err == nil || err.Error() != "a true" {
		t.Errorf("got %v, want the caller's error", err)
	}
}

func manyNames(n int) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := range n {
			if !yield(fmt.Sprint("f", i)) {
				return
			}
		}
	}
}

// TestOverALimit: a directory of too many entries, or too long, is refused before
// it is read.
func TestOverALimit(t *testing.T) {
	b := zipOf(t, strings.Repeat("x", 1000), "a", "b")
	for want, opts := range map[string]zipdir.Options{
		"2 entries, want at most 1": {MaxEntries: 1, MaxDirectoryBytes: 1 << 20},
		"bytes, want at most 1000":  {MaxEntries: 2, MaxDirectoryBytes: 1000},
	} {
		_, err := zipdir.Read(bytes.NewReader(b), int64(len(b)), opts)
		if !errors.Is(err, zipdir.ErrLimit) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestTorchsZip: what torch wrote itself, and what a test's builder writes.
func TestTorchsZip(t *testing.T) {
	torchs, err := os.ReadFile(testenv.Foreign(t, "carton/test_model.pt"))
	if err != nil {
		t.Fatal(err)
	}
	built := modeltest.TorchZip("r", "little", modeltest.Record{Name: "empty"}, modeltest.Record{Name: "x/y", Data: make([]byte, 1000)})
	for _, b := range [][]byte{torchs, built} {
		d, err := check(b, plain)
		if err != nil {
			t.Fatal(err)
		}
		for i, record := range modeltest.Records(t, b) {
			e := d.Files[i]
			data, err := e.Locate(bytes.NewReader(b))
			if err != nil || e.Name != record.Name || e.Size != int64(len(record.Data)) || data%64 != 0 {
				t.Errorf("%s: got %s of %d bytes at %d, %v", record.Name, e.Name, e.Size, data, err)
			}
			if e.Method == zipdir.Stored && !bytes.Equal(b[data:data+e.Size], record.Data) {
				t.Errorf("%s: other bytes at %d", record.Name, data)
			}
		}
	}
}

// longDirectory is a zip whose directory of 500 kB begins before its tail.
func longDirectory(t *testing.T) []byte {
	return zipOf(t, strings.Repeat("c", 10_000), slices.Collect(manyNames(50))...)
}

// TestOneRead: a directory that lies in the tail is one read; a longer one is
// read in pieces, never whole.
func TestOneRead(t *testing.T) {
	b := zipOf(t, "", slices.Collect(manyNames(50))...)
	r := &counting{r: bytes.NewReader(b)}
	if _, err := zipdir.Read(r, int64(len(b)), plain); err != nil || r.reads != 1 {
		t.Errorf("%d reads, %v", r.reads, err)
	}
	b = longDirectory(t)
	r = &counting{r: bytes.NewReader(b)}
	d, err := zipdir.Read(r, int64(len(b)), plain)
	if err != nil || r.most > zipdir.TailBytes || r.reads > 10 {
		t.Errorf("%d reads of at most %d bytes, %v", r.reads, r.most, err)
	}
	if d.Tail() != int64(len(b)-zipdir.TailBytes) {
		t.Errorf("tail begins at %d of %d", d.Tail(), len(b))
	}
	// ReaderAt is the whole zip, and its tail costs nothing.
	before := r.reads
	got := make([]byte, 100)
	if _, err := d.ReaderAt().ReadAt(got, int64(len(b)-100)); err != nil || r.reads != before || !bytes.Equal(got, b[len(b)-100:]) {
		t.Errorf("%d more reads, %v", r.reads-before, err)
	}
	if _, err := d.ReaderAt().ReadAt(got, 5); err != nil || !bytes.Equal(got, b[5:105]) {
		t.Error(err)
	}
	if n, err := d.ReaderAt().ReadAt(got, int64(len(b)-10)); n != 10 || err != io.EOF {
		t.Errorf("at the end: %d, %v", n, err)
	}
	// What was checked is not read again.
	if err := d.Check(r); err != nil {
		t.Fatal(err)
	}
	before = r.reads
	if err := d.Check(r); err != nil || r.reads != before {
		t.Errorf("%d more reads, %v", r.reads-before, err)
	}
}

type counting struct {
	r           io.ReaderAt
	reads, most int
}

func (c *counting) ReadAt(p []byte, off int64) (int, error) {
	c.reads++
	c.most = max(c.most, len(p))
	return c.r.ReadAt(p, off)
}

// TestSourceErrors: a broken connection says nothing of the zip.
func TestSourceErrors(t *testing.T) {
	b := longDirectory(t)
	for n := range 3 {
		broken := errors.New("connection reset")
		_, err := zipdir.Read(&failing{bytes.NewReader(b), n, broken}, int64(len(b)), plain)
		var e *zipdir.Error
		if !errors.Is(err, broken) || errors.As(err, &e) {
			t.Errorf("read %d: got %v", n, err)
		}
	}
}

type failing struct {
	r     io.ReaderAt
	after int
	err   error
}

func (f *failing) ReadAt(p []byte, off int64) (int, error) {
	if f.after--; f.after < 0 {
		return 0, f.err
	}
	return f.r.ReadAt(p, off)
}

// FuzzRead: no input crashes it, and what it accepts lies inside the file and
// does not overlap.
func FuzzRead(f *testing.F) {
	f.Add(zipOf(f, ""))
	f.Add(zipOf(f, "comment", "d/", "d/e", "a"))
	f.Add(modeltest.TorchZip("r", "little", modeltest.Record{Name: "x/y", Data: make([]byte, 10)}))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := check(b, all)
		var broken *zipdir.Error
		switch {
		case err != nil && !errors.As(err, &broken):
			t.Fatalf("got %v, which is of no kind", err)
		case err != nil:
			return
		}
		for _, e := range d.Files {
			data, err := e.Locate(bytes.NewReader(b))
			if err != nil || data < e.Offset+30 || data+e.Packed > e.End || e.End > int64(len(b)) {
				t.Fatalf("%s with data at %d in %d bytes, %v", e.Name, data, len(b), err)
			}
		}
	})
}

var le = binary.LittleEndian

// field is an extra field.
func field(id uint16, data string) string {
	return string(le.AppendUint16(le.AppendUint16(nil, id), uint16(len(data)))) + data
}

func u64(values ...uint64) string {
	var b []byte
	for _, v := range values {
		b = le.AppendUint64(b, v)
	}
	return string(b)
}
