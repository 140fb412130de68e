package layout_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/google/go-cmp/cmp"
)

// entry is what a TarReader said of an entry, and its content.
type entry struct {
	layout.TarHeader
	Content string
}

func readTar(r io.Reader) ([]entry, error) {
	t := layout.NewTarReader(r)
	var list []entry
	for {
		h, err := t.Next()
		if err == io.EOF { //nolint:errorlint // Next's own
			return list, nil
		}
		if err != nil {
			return list, err
		}
		body, err := io.ReadAll(t)
		if err != nil {
			return list, err
		}
		list = append(list, entry{*h, string(body)})
	}
}

// foreign writes a tar by archive/tar: headers of a stranger's making.
func foreign(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatalf("%s: %v", h.Name, err)
		}
		if h.Size > 0 {
			if _, err := w.Write(content("x", h.Size)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// block is a header block with a right checksum.
func block(name string, kind byte, size int64, edit func(b []byte)) []byte {
	b := make([]byte, 512)
	copy(b, name)
	copy(b[100:], "0000644\x00")
	copy(b[124:], fmt.Sprintf("%011o\x00", size))
	b[156] = kind
	copy(b[257:], "ustar\x0000")
	if edit != nil {
		edit(b)
	}
	setSum(b)
	return b
}

func setSum(b []byte) {
	copy(b[148:], "        ")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
}

// body is content with its padding.
func body(s string) []byte { return append([]byte(s), make([]byte, (512-len(s)%512)%512)...) }

func record(key, value string) string {
	n := len(key) + len(value) + 3
	for len(fmt.Sprint(n))+len(key)+len(value)+3 != n {
		n++
	}
	return fmt.Sprintf("%d %s=%s\n", n, key, value)
}

func pax(records ...string) []byte {
	all := strings.Join(records, "")
	return append(block("PaxHeaders.0/x", 'x', int64(len(all)), nil), body(all)...)
}

var end = make([]byte, 1024)

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func TestReadsTarsOfOtherWriters(t *testing.T) {
	long := strings.Repeat("n", 130) + "/" + strings.Repeat("m", 130)
	hello := block("hello", '0', 5, nil)
	cases := []struct {
		name string
		tar  []byte
		want []entry
	}{
		{"host owner, times and mode", foreign(t, tar.Header{
			Typeflag: tar.TypeReg, Name: "a", Size: 3, Mode: 0o1755, Uid: 1000, Gid: 1000, Uname: "me", Gname: "us",
			ModTime: time.Unix(1_700_000_000, 123), AccessTime: time.Unix(1, 2), Format: tar.FormatPAX,
		}), []entry{{layout.TarHeader{TarEntry: layout.TarEntry{Path: "a", Size: 3}, Offset: 1536}, string(content("x", 3))}}},
		{"dot slash", foreign(t,
			tar.Header{Typeflag: tar.TypeDir, Name: "./", Mode: 0o755},
			tar.Header{Typeflag: tar.TypeDir, Name: "./d/", Mode: 0o2775},
			tar.Header{Typeflag: tar.TypeReg, Name: "././d/f", Size: 1},
			tar.Header{Typeflag: tar.TypeSymlink, Name: "./l", Linkname: "./d/f"},
		), []entry{
			{layout.TarHeader{TarEntry: layout.TarEntry{Path: "."}, Folder: true, Offset: 512}, ""},
			{layout.TarHeader{TarEntry: layout.TarEntry{Path: "d"}, Folder: true, Offset: 1024}, ""},
			{layout.TarHeader{TarEntry: layout.TarEntry{Path: "d/f", Size: 1}, Offset: 1536}, "x"},
			{layout.TarHeader{TarEntry: layout.TarEntry{Path: "l", Target: "./d/f"}, Offset: 2560}, ""},
		}},
		{"names are not judged", foreign(t, tar.Header{Typeflag: tar.TypeReg, Name: "../x"}), []entry{
			{layout.TarHeader{TarEntry: layout.TarEntry{Path: "../x"}, Offset: 512}, ""},
		}},
		{"GNU long names", foreign(t, tar.Header{Typeflag: tar.TypeSymlink, Name: long, Linkname: long, Format: tar.FormatGNU}), []entry{
			{layout.TarHeader{TarEntry: layout.TarEntry{Path: long, Target: long}, Offset: 5 * 512}, ""},
		}},
		{"PAX long names", foreign(t, tar.Header{Typeflag: tar.TypeSymlink, Name: long, Linkname: long, Format: tar.FormatPAX}), []entry{
			{layout.TarHeader{TarEntry: layout.TarEntry{Path: long, Target: long}, Offset: 2048}, ""},
		}},
		{"prefix", join(block("f", '0', 5, func(b []byte) { copy(b[345:], "some/folder") }), body("hello"), end), []entry{
			{layout.TarHeader{TarEntry: layout.TarEntry{Path: "some/folder/f", Size: 5}, Offset: 512}, "hello"},
		}},
		{"V7", join(block("d/", 0, 0, func(b []byte) { clear(b[257:265]) }), block("d/f", 0, 5, func(b []byte) { clear(b[257:265]) }), body("hello"), end), []entry{
			{layout.TarHeader{TarEntry: layout.TarEntry{Path: "d"}, Folder: true, Offset: 512}, ""},
			{layout.TarHeader{TarEntry: layout.TarEntry{Path: "d/f", Size: 5}, Offset: 1024}, "hello"},
		}},
		{"base 256", join(block("f", '0', 0, func(b []byte) { clear(b[124:136]); b[124] = 0x80; b[135] = 5 }), body("hello"), end), []entry{
			{layout.TarHeader{TarEntry: layout.TarEntry{Path: "f", Size: 5}, Offset: 512}, "hello"},
		}},
		{"PAX size beside none", join(pax(record("size", "5")), block("f", '0', 0, nil), body("hello"), end), []entry{
			{layout.TarHeader{TarEntry: layout.TarEntry{Path: "f", Size: 5}, Offset: 1536}, "hello"},
		}},
		{"PAX size beside the same", join(pax(record("size", "5")), hello, body("hello"), end), []entry{
			{layout.TarHeader{TarEntry: layout.TarEntry{Path: "hello", Size: 5}, Offset: 1536}, "hello"},
		}},
		{"global comment", join(block("pax_global_header", 'g', 16, nil), body(record("comment", "abcd")), hello, body("hello"), end), []entry{
			{layout.TarHeader{TarEntry: layout.TarEntry{Path: "hello", Size: 5}, Offset: 1536}, "hello"},
		}},
		{"signed checksum", join(signed(block("h\xe9llo", '0', 5, nil)), body("hello"), end), []entry{
			{layout.TarHeader{TarEntry: layout.TarEntry{Path: "h\xe9llo", Size: 5}, Offset: 512}, "hello"},
		}},
		{"zeros behind the end", join(hello, body("hello"), end, make([]byte, 20_001)), []entry{
			{layout.TarHeader{TarEntry: layout.TarEntry{Path: "hello", Size: 5}, Offset: 512}, "hello"},
		}},
		{"nothing", end, nil},
	}
	for _, c := range cases {
		got, err := readTar(bytes.NewReader(c.tar))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if _, err := readTar(iotest.OneByteReader(bytes.NewReader(c.tar))); err != nil {
			t.Errorf("%s, byte by byte: %v", c.name, err)
		}
		for _, e := range got {
			if at := string(c.tar[e.Offset:][:e.Size]); at != e.Content {
				t.Errorf("%s: %s: got %q at its offset", c.name, e.Path, at)
			}
		}
		scanned(t, c.name, c.tar, got)
	}
}

// signed gives a header block the checksum that old writers computed.
func signed(b []byte) []byte {
	copy(b[148:], "        ")
	sum := 0
	for _, c := range b {
		sum += int(int8(c)) //nolint:gosec // meant
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

// scanned wants ScanTar to list what TarReader read.
func scanned(t *testing.T, name string, b []byte, want []entry) {
	t.Helper()
	list, err := layout.ScanTar(t.Context(), int64(len(b)), rangeOf(b, nil))
	if err != nil {
		t.Errorf("%s: scan: %v", name, err)
	}
	var headers []layout.TarHeader
	for _, e := range want {
		headers = append(headers, e.TarHeader)
	}
	if diff := cmp.Diff(headers, list); diff != "" {
		t.Errorf("%s: scan: %s", name, diff)
	}
}

// rangeOf opens ranges of b, and adds what was asked for to log.
func rangeOf(b []byte, log *[][2]int64) layout.RangeOpener {
	return func(_ context.Context, off, n int64) (io.ReadCloser, error) {
		if log != nil {
			*log = append(*log, [2]int64{off, n})
		}
		return io.NopCloser(bytes.NewReader(b[off : off+n])), nil
	}
}

func TestRefusesWhatALayerMayNotHold(t *testing.T) {
	hello := join(block("hello", '0', 5, nil), body("hello"))
	cases := []struct {
		name string
		tar  []byte
		want string
	}{
		{"hard link", foreign(t, tar.Header{Typeflag: tar.TypeLink, Name: "a", Linkname: "b"}), "hard link"},
		{"char device", foreign(t, tar.Header{Typeflag: tar.TypeChar, Name: "a"}), "device"},
		{"block device", foreign(t, tar.Header{Typeflag: tar.TypeBlock, Name: "a"}), "device"},
		{"FIFO", foreign(t, tar.Header{Typeflag: tar.TypeFifo, Name: "a"}), "FIFO"},
		{"old sparse", join(block("a", 'S', 0, nil), end), "sparse"},
		{"PAX sparse", join(pax(record("GNU.sparse.major", "1")), hello, end), "sparse"},
		{"star sparse", join(pax(record("SUN.holesdata", "1")), hello, end), "sparse"},
		{"contiguous", join(block("a", '7', 0, nil), end), "type '7'"},
		{"volume label", join(block("a", 'V', 0, nil), end), "type 'V'"},
		{"setuid", foreign(t, tar.Header{Typeflag: tar.TypeReg, Name: "a", Mode: 0o4755}), "setuid"},
		{"setgid", foreign(t, tar.Header{Typeflag: tar.TypeReg, Name: "a", Mode: 0o2755}), "setgid"},
		{"folder with data", join(block("d/", '5', 5, nil), body("hello"), end), "folder or symlink of 5 bytes"},
		{"symlink with data", join(block("l", '2', 5, func(b []byte) { b[157] = 'a' }), body("hello"), end), "folder or symlink of 5 bytes"},
		{"symlink to nothing", join(block("l", '2', 0, nil), end), "without a target"},
		{"file with a slash", join(block("f/", '0', 0, nil), end), "ends in a slash"},
		{"no name", join(block("", '0', 0, nil), end), "no name"},
		{"only a slash", join(block("/", '5', 0, nil), end), "no name"},
		{"two sizes", join(pax(record("size", "6")), hello, end), "states the size 6, the tar header 5"},
		{"two size records", join(pax(record("size", "5"), record("size", "5")), hello, end), "two sizes"},
		{"two paths", join(pax(record("path", "a"), record("path", "b")), hello, end), "name its path twice"},
		{"two PAX headers", join(pax(record("path", "a")), pax(record("mtime", "1")), hello, end), "two PAX headers"},
		{"PAX and GNU path", join(pax(record("path", "a")), block("L", 'L', 2, nil), body("b\x00"), hello, end), "name its path twice"},
		{"NUL in a PAX path", join(pax(record("path", "a\x00b")), hello, end), "header states the path"},
		{"empty PAX path", join(pax(record("path", "")), hello, end), "header states the path"},
		{"negative PAX size", join(pax(record("size", "-5")), hello, end), "header states the size"},
		{"PAX size is no number", join(pax(record("size", "5x")), hello, end), "header states the size"},
		{"empty PAX size", join(pax(record("size", "")), hello, end), "header states the size"},
		{"PAX record too long", join(block("x", 'x', 9, nil), body("99 a=bcd\n"), hello, end), "PAX record"},
		{"PAX record too short", join(block("x", 'x', 9, nil), body("3 a=bcde\n"), hello, end), "PAX record"},
		{"PAX record of no length", join(block("x", 'x', 9, nil), body("0 a=bcde\n"), hello, end), "PAX record"},
		{"PAX record that ends in its length", join(block("x", 'x', 9, nil), body("2\n a=bcd\n"), hello, end), "PAX record"},
		{"PAX record without a newline", join(block("x", 'x', 9, nil), body("9 a=bcdef"), hello, end), "PAX record"},
		{"PAX record without =", join(block("x", 'x', 9, nil), body("9 abcdef\n"), hello, end), "PAX record"},
		{"PAX record without a key", join(block("x", 'x', 9, nil), body("9 =bcdef\n"), hello, end), "PAX record"},
		{"PAX record without a space", join(block("x", 'x', 9, nil), body("9abcdefg\n"), hello, end), "PAX record"},
		{"global path", join(block("g", 'g', 9, nil), body(record("path", "a")), hello, end), "global PAX header sets path"},
		{"global size", join(block("g", 'g', 9, nil), body(record("size", "5")), hello, end), "global PAX header sets size"},
		{"PAX header and no entry", join(pax(record("path", "a")), end), "extended header"},
		{"GNU name and no entry", join(block("L", 'L', 2, nil), body("b\x00"), end), "extended header"},
		{"wrong checksum", join(bytes.Replace(hello, []byte("hello"), []byte("hallo"), 1), end), "checksum"},
		{"unknown magic", join(block("f", '0', 0, func(b []byte) { copy(b[257:], "USTAR") }), end), "magic"},
		{"star's trailer", join(block("f", '0', 0, func(b []byte) { copy(b[508:], "tar\x00") }), end), "behind the prefix"},
		{"a prefix in a GNU header", join(block("f", '0', 0, func(b []byte) { copy(b[257:], "ustar  \x00some"); copy(b[345:], "folder") }), end), "behind GNU's magic"},
		{"size is no number", join(block("f", '0', 0, func(b []byte) { copy(b[124:], "0000000000x") }), end), "header states the size"},
		{"negative size", join(block("f", '0', 0, func(b []byte) { copy(b[124:], bytes.Repeat([]byte{0xff}, 12)) }), end), "header states the size"},
		{"size of 2^63", join(block("f", '0', 0, func(b []byte) { clear(b[124:136]); b[124], b[128] = 0x80, 0x80 }), end), "header states the size"},
		{"size of 2^62", join(block("f", '0', 0, func(b []byte) { clear(b[124:136]); b[124], b[128] = 0x80, 0x40 }), end), "too large"},
		{"mode is no number", join(block("f", '0', 0, func(b []byte) { copy(b[100:], "rw-r--r-") }), end), "header states the mode"},
		{"one zero block", join(hello, make([]byte, 512), hello, end), "one zero block"},
		{"data behind the end", join(hello, end, make([]byte, 5000), []byte{1}), "behind its end"},
		{"a second tar behind the end", join(hello, end, hello, end), "behind its end"},
		{"no end", hello, "truncated"},
		{"half an end", join(hello, make([]byte, 512)), "truncated"},
		{"end cut short", join(hello, make([]byte, 1023)), "truncated"},
		{"content cut short", join(hello)[:514], "truncated"},
		{"header cut short", join(hello)[:511], "truncated"},
		{"no bytes", nil, "truncated"},
		{"extended header cut short", pax(record("path", "a"))[:515], "truncated"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := readTar(bytes.NewReader(c.tar))
			if !errors.Is(err, layout.ErrFormat) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want ErrFormat: …%s…", err, c.want)
			}
			_, err = layout.ScanTar(t.Context(), int64(len(c.tar)), rangeOf(c.tar, nil))
			if !errors.Is(err, layout.ErrFormat) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("scan: got %v, want ErrFormat: …%s…", err, c.want)
			}
		})
	}
	huge := join(block("x", 'x', 1<<20+1, nil), make([]byte, 2<<20))
	if _, err := readTar(bytes.NewReader(huge)); !errors.Is(err, layout.ErrLimit) {
		t.Errorf("extended header of over 1 MiB: got %v, want ErrLimit", err)
	}
}

// Writers that can't say a size in octal say the largest that they can, or none.
func TestPAXSizeBesideAFullField(t *testing.T) {
	for _, c := range []struct {
		octal string
		pax   int64
		ok    bool
	}{
		{"77777777777\x00", 8 << 30, true},
		{"77777777777\x00", 5 << 40, true},
		{"77777777777\x00", 8<<30 - 1, true},
		{"77777777777\x00", 8<<30 - 2, false},
		{"00000000000\x00", 8 << 30, true},
		{"77777777776\x00", 8 << 30, false},
	} {
		header := block("f", '0', 0, func(b []byte) { copy(b[124:], c.octal) })
		h, err := layout.NewTarReader(bytes.NewReader(join(pax(record("size", fmt.Sprint(c.pax))), header))).Next()
		if (err == nil) != c.ok || (c.ok && h.Size != c.pax) {
			t.Errorf("%q beside %d: got %+v, %v", c.octal, c.pax, h, err)
		}
	}
}

// repeated gives one block for ever.
type repeated struct {
	block []byte
	off   int
}

func (r *repeated) Read(b []byte) (int, error) {
	n := copy(b, r.block[r.off:])
	r.off = (r.off + n) % len(r.block)
	return n, nil
}

func TestTooManyEntries(t *testing.T) {
	testenv.Heavy(t)
	r := layout.NewTarReader(&repeated{block: block("a", '0', 0, nil)})
	for n := 0; ; n++ {
		if _, err := r.Next(); err != nil {
			if !errors.Is(err, layout.ErrLimit) || n != layout.MaxTarEntries {
				t.Errorf("got %v after %d entries, want ErrLimit after %d", err, n, layout.MaxTarEntries)
			}
			return
		}
	}
}

func TestTooManyExtendedHeaders(t *testing.T) {
	global := join(block("g", 'g', 16, nil), body(record("comment", "abcd")))
	hello := join(block("hello", '0', 5, nil), body("hello"), end)
	if _, err := readTar(bytes.NewReader(join(bytes.Repeat(global, 16), hello))); err != nil {
		t.Errorf("16: %v", err)
	}
	if _, err := readTar(bytes.NewReader(join(bytes.Repeat(global, 17), hello))); !errors.Is(err, layout.ErrLimit) {
		t.Errorf("17: got %v, want ErrLimit", err)
	}
	if _, err := layout.NewTarReader(&repeated{block: global}).Next(); !errors.Is(err, layout.ErrLimit) {
		t.Errorf("without end: got %v, want ErrLimit", err)
	}
}

func TestTarReaderPassesOnErrorsOfItsSource(t *testing.T) {
	b := join(block("hello", '0', 5, nil), body("hello"), end)
	broken := errors.New("connection reset")
	for _, cause := range []error{broken, io.ErrUnexpectedEOF, fmt.Errorf("cut: %w", io.EOF)} {
		for n := 0; n <= len(b); n += 64 {
			_, err := readTar(io.MultiReader(bytes.NewReader(b[:n]), iotest.ErrReader(cause)))
			if !errors.Is(err, cause) || errors.Is(err, layout.ErrFormat) {
				t.Fatalf("after %d bytes: got %v, want %v", n, err, cause)
			}
		}
	}
}

func TestNextLeavesOutContent(t *testing.T) {
	entries := tarCases[1].entries
	r := layout.NewTarReader(bytes.NewReader(tarBytes(t, entries)))
	var names []string
	for {
		h, err := r.Next()
		if err == io.EOF { //nolint:errorlint // Next's own
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Path)
		io.ReadFull(r, make([]byte, min(3, h.Size)))
	}
	want := []string{"misc", "misc/empty", "model", "model/.hidden", "model/a.txt", "model/a", "model/a/b.json", "model/a/link"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	if _, err := r.Next(); err != io.EOF { //nolint:errorlint // Next's own
		t.Errorf("behind the end: got %v, want io.EOF", err)
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF { //nolint:errorlint // Read's own
		t.Errorf("reading behind the end: got %d, %v, want io.EOF", n, err)
	}
}

func TestScanLeavesOutLargeContentOnly(t *testing.T) {
	testenv.Heavy(t)
	entries := []layout.TarEntry{
		{Path: "a", Size: 100 << 10},
		{Path: "b", Size: 40 << 20},
		{Path: "c", Size: 200 << 10},
		{Path: "d", Size: 1},
	}
	b := tarBytes(t, entries)
	var log [][2]int64
	list, err := layout.ScanTar(t.Context(), int64(len(b)), rangeOf(b, &log))
	if err != nil {
		t.Fatal(err)
	}
	p := plan(t, entries)
	for i, h := range list {
		if off, n, _ := p.Extent(h.Path); h.Path != entries[i].Path || off != h.Offset || n != h.Size {
			t.Errorf("got %+v, want %s of %d bytes at %d", h, entries[i].Path, n, off)
		}
	}
	var asked int64
	for _, r := range log {
		asked += r[1]
	}
	if len(log) > 3 || asked > 1<<20 {
		t.Errorf("asked for %v, want at most three ranges of 1 MiB in all", log)
	}
	// Many small members are one sequential read of growing ranges.
	entries = nil
	for i := range 2000 {
		entries = append(entries, layout.TarEntry{Path: fmt.Sprintf("m/%04d", i), Size: 10 << 10})
	}
	b, log = tarBytes(t, entries), nil
	if _, err := layout.ScanTar(t.Context(), int64(len(b)), rangeOf(b, &log)); err != nil {
		t.Fatal(err)
	}
	if len(log) > 8 {
		t.Errorf("asked for %d ranges of %d bytes, want at most 8", len(log), len(b))
	}
	// Behind a large member ranges begin small again.
	entries = append(entries, layout.TarEntry{Path: "n", Size: 20 << 20}, layout.TarEntry{Path: "o", Size: 20 << 20})
	b, log = tarBytes(t, entries), nil
	if _, err := layout.ScanTar(t.Context(), int64(len(b)), rangeOf(b, &log)); err != nil {
		t.Fatal(err)
	}
	if last := log[len(log)-2]; last[1] > 256<<10 {
		t.Errorf("between two large members asked for %d bytes", last[1])
	}
}

func TestScanPassesOnErrors(t *testing.T) {
	b := tarBytes(t, []layout.TarEntry{{Path: "a", Size: 1 << 20}})
	broken := errors.New("connection reset")
	_, err := layout.ScanTar(t.Context(), int64(len(b)), func(_ context.Context, off, n int64) (io.ReadCloser, error) {
		if off > 0 {
			return nil, broken
		}
		return io.NopCloser(bytes.NewReader(b[:n])), nil
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	_, err = layout.ScanTar(t.Context(), int64(len(b)), func(context.Context, int64, int64) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("short")), nil
	})
	if !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, layout.ErrFormat) {
		t.Errorf("a range that is too short: got %v, want ErrUnexpectedEOF", err)
	}
}

func TestReadsTarsOfOtherPrograms(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tree")
	writeTree(t, dir, map[string]string{
		"model/config.json":     "{}",
		"model/" + long120[6:]:  "long",
		"model/größe/モデル.bin":   "unicode",
		"model/deep/link → cfg": "../config.json",
	})
	commands := map[string][][]string{
		"tar": {
			{"--format=gnu", "-cf", "-", "."},
			{"--format=pax", "-cf", "-", "."},
			{"--format=pax", "-cf", "-", "model"},
			{"--format=posix", "--sort=name", "-b", "1", "-cf", "-", "."},
		},
		"python3": {
			{"-c", `
import sys, tarfile
with tarfile.open(fileobj=sys.stdout.buffer, mode="w|", format=tarfile.PAX_FORMAT) as t: t.add("model")`},
			{"-c", `
import sys, tarfile
with tarfile.open(fileobj=sys.stdout.buffer, mode="w|", format=tarfile.GNU_FORMAT) as t: t.add("model")`},
		},
	}
	for program, runs := range commands {
		t.Run(program, func(t *testing.T) {
			bin := testenv.Program(t, program)
			for _, args := range runs {
				cmd := exec.Command(bin, args...)
				cmd.Dir = dir
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("%q: %v", args, err)
				}
				list, err := readTar(bytes.NewReader(out))
				if err != nil {
					t.Fatalf("%q: %v", args, err)
				}
				got := map[string]string{}
				for _, e := range list {
					if !e.Folder {
						got[e.Path] = e.Content + e.Target
					}
				}
				want := map[string]string{
					"model/config.json": "{}", long120: "long", "model/größe/モデル.bin": "unicode",
					"model/deep/link → cfg": "../config.json",
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%q: %s", args, diff)
				}
			}
		})
	}
}
