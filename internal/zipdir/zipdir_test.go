package zipdir_test

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/modeltest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/internal/zipdir"
)

var limits = zipdir.Limits{Entries: 100, DirectoryBytes: 1 << 20}

// check reads the directory and every local header.
func check(b []byte) (*zipdir.Directory, error) {
	r := bytes.NewReader(b)
	d, err := zipdir.Read(r, int64(len(b)), limits)
	if err != nil {
		return nil, err
	}
	for _, e := range d.Files {
		if err := e.Check(r); err != nil {
			return nil, err
		}
		if err := e.CheckDescriptor(r); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func TestGoodZips(t *testing.T) {
	a := rawEntry{name: "a", data: "one"}
	streamed := rawEntry{name: "s", data: "two", flags: 0x808, local: local{after: descriptor("two")}}
	for name, z := range map[string]rawZip{
		"empty":            {},
		"one":              {entries: []rawEntry{a}},
		"streamed":         {entries: []rawEntry{streamed, a}},
		"zip64 end record": {entries: []rawEntry{a}, zip64: true},
		"all ones":         {entries: []rawEntry{a}, zip64: true, lie: func(b []byte) { copy(b[4:20], strings.Repeat("\xff", 16)) }},
		"comments":         {entries: []rawEntry{{name: "a", comment: "of a"}}, comment: "of all"},
		"folder":           {entries: []rawEntry{{name: "d/", mode: 0o40755<<16 | 0x10}, {name: "d/a", mode: 0o100644 << 16, data: "x"}}},
		"padding":          {entries: []rawEntry{{name: "a", data: "x", local: local{extra: field(0x4246, strings.Repeat("Z", 60000))}}}},
		"trailing zeros":   {entries: []rawEntry{{name: "a", extra: "\x00\x00\x00", local: local{extra: "\x00"}}}},
		"Go's zip64 field": {entries: []rawEntry{{name: "a", data: "xyz", extra: field(1, u64(3, 3, 0)), lie: func(d []byte) { copy(d[20:28], "\xff\xff\xff\xff\xff\xff\xff\xff") }}}},
		"sizes repeated":   {entries: []rawEntry{{name: "a", data: "xyz", local: local{extra: field(1, u64(3, 3))}}}},
		"its own name":     {entries: []rawEntry{{name: "é", extra: field(0x7075, unicodeName("é", "é"))}}},
	} {
		if _, err := check(z.bytes()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func unicodeName(header, name string) string {
	return "\x01" + string(le.AppendUint32(nil, crc32.ChecksumIEEE([]byte(header)))) + name
}

// TestHostileZips: group A of what attackers do to zips, as far as a directory
// can tell.
func TestHostileZips(t *testing.T) {
	a := rawEntry{name: "a", data: "one"}
	b := rawEntry{name: "b", data: "two"}
	with := func(e rawEntry) rawZip { return rawZip{entries: []rawEntry{e, b}} }
	named := func(name string) rawZip { return with(rawEntry{name: name, data: "x"}) }
	ones := func(d []byte) { copy(d[20:28], "\xff\xff\xff\xff\xff\xff\xff\xff") }
	for _, c := range []struct {
		name string
		z    rawZip
		want string
	}{
		{"A1 directory cut", rawZip{entries: []rawEntry{a}, lie: put32(12, 40)}, "does not end where the end record begins"},
		{"A1 entry cut", rawZip{entries: []rawEntry{{name: "a", lie: put16(28, 500)}}}, "the central directory ends inside"},
		{"A1 too few entries", rawZip{entries: []rawEntry{a, b}, lie: func(e []byte) { put16(8, 1)(e); put16(10, 1)(e) }}, "belong to none of its 1 entries"},
		{"A1 too many entries", rawZip{entries: []rawEntry{a}, lie: func(e []byte) { put16(8, 2)(e); put16(10, 2)(e) }}, "can't hold 2 entries"},
		{"A1 no entry", rawZip{entries: []rawEntry{{name: "a", lie: put32(0, 7)}}}, "signature of an entry"},
		{"A2 one offset twice", rawZip{entries: []rawEntry{a, {name: "b", data: "two", offset: -34}}}, "run into what begins at 0"},
		{"A3 overlap", rawZip{entries: []rawEntry{a, {name: "b", data: "two", offset: -2}}}, "run into what begins at"},
		{"A3 offset in the directory", rawZip{entries: []rawEntry{a, {name: "b", data: "two", offset: 60}}}, "belong to nothing|run into|inside another"},
		{"A4 local name", with(rawEntry{name: "a", local: local{name: "z"}}), "another name"},
		{"A4 local name is longer", with(rawEntry{name: "a", local: local{name: "aa"}}), "another name"},
		{"A5 local size", with(rawEntry{name: "a", data: "one", local: local{lie: put32(22, 2)}}), "has size 2 in its local header"},
		{"A5 local CRC", with(rawEntry{name: "a", data: "one", local: local{lie: put32(14, 2)}}), "in its local header"},
		{"A6 local method", with(rawEntry{name: "a", data: "one", local: local{lie: put16(8, 8)}}), "method 8 in its local header"},
		{"A6 local flags", with(rawEntry{name: "a", data: "one", local: local{lie: put16(6, 8)}}), "in its local header"},
		{"A7 says 4 GiB", with(rawEntry{name: "a", data: "one", lie: func(d []byte) { put32(20, 1<<32-2)(d); put32(24, 1<<32-2)(d) }}), "run into"},
		{"A8 says less", with(rawEntry{name: "a", data: "one", lie: func(d []byte) { put32(20, 2)(d); put32(24, 2)(d) }}), "want the next record there"},
		{"A9 zip64 unasked", with(rawEntry{name: "a", extra: field(1, u64(0))}), "does not ask for"},
		{"A9 zip64 twice", with(rawEntry{name: "a", extra: field(1, u64(0, 0)) + field(1, u64(0, 0)), lie: ones}), "two zip64 extra fields"},
		{"A9 zip64 cut", with(rawEntry{name: "a", extra: field(1, u64(0)), lie: ones}), "want 16"},
		{"A9 zip64 contradicts", with(rawEntry{name: "a", extra: field(1, u64(0, 0, 7)), lie: ones}), "where the entry says 0"},
		{"A9 local zip64 lies", with(rawEntry{name: "a", local: local{extra: field(1, u64(99))}}), "none of the entry's sizes"},
		{"A9 local zip64 cut", with(rawEntry{name: "a", local: local{extra: field(1, "x"), lie: put32(22, 1<<32-1)}}), "cut short"},
		{"A9 local zip64 twice", with(rawEntry{name: "a", local: local{extra: field(1, "") + field(1, "")}}), "two zip64"},
		{"A10 zip64 of 2^63", with(rawEntry{name: "a", extra: field(1, u64(1<<63, 1<<63)), lie: ones}), "over 2^63-1"},
		{"A10 end record of 2^63", rawZip{entries: []rawEntry{a}, zip64: true, lie: put32(16, 1<<32-1), lie64: func(e []byte) { le.PutUint64(e[48:], 1<<63) }}, "disagree on the offset"},
		{"A11 duplicate", rawZip{entries: []rawEntry{a, a}}, "name occurs twice"},
		{"A11 file and folder entry", rawZip{entries: []rawEntry{a, {name: "a/"}}}, "name occurs twice"},
		{"A14 file and folder", rawZip{entries: []rawEntry{a, {name: "a/b"}}}, "lies below a, which is a file"},
		{"A15 climbs", named("../a"), "not clean"},
		{"A15 climbs inside", named("x/../../a"), "not clean"},
		{"A16 absolute", named("/a"), "absolute"},
		{"A17 backslash", named(`a\b`), "backslash"},
		{"A18 NUL", named("a\x00b"), "control character"},
		{"A19 newline", named("a\nb"), "control character"},
		{"A20 bad UTF-8", named("a\xff"), "not UTF-8"},
		{"A22 empty", named(""), "empty name"},
		{"A22 dot", named("."), "not clean"},
		{"A22 two slashes", named("a//b"), "not clean"},
		{"A23 long", named(strings.Repeat("x", 4097)), "want at most 4096"},
		{"A24 method 99", with(rawEntry{name: "a", method: 99}), "compression method 99"},
		{"A24 method 93", with(rawEntry{name: "a", method: 93}), "compression method 93"},
		{"A24 stored in fewer bytes", with(rawEntry{name: "a", data: "one", lie: put32(24, 9)}), "is stored, but"},
		{"A25 encrypted", with(rawEntry{name: "a", flags: 1}), "is encrypted"},
		{"A25 unknown flag", with(rawEntry{name: "a", flags: 1 << 5}), "some are unknown"},
		{"A26 lying descriptor", with(rawEntry{name: "a", data: "one", flags: 8, local: local{after: descriptor("two")}}), "data descriptor says other"},
		{"A26 no descriptor", with(rawEntry{name: "a", data: "one", flags: 8}), "run into"},
		{"A29 prefix", rawZip{prefix: "#!/bin/sh\n", entries: []rawEntry{a}}, "10 bytes lie before the first entry"},
		{"A29 prefix of nothing", rawZip{prefix: "junk"}, "before the directory of no entries"},
		{"A29 a second name", with(rawEntry{name: "a", extra: field(0x7075, unicodeName("a", "z"))}), "a second name"},
		{"A29 a second local name", with(rawEntry{name: "a", local: local{extra: field(0x7075, unicodeName("a", "z"))}}), "a second name"},
		{"A29 a name of version 2", with(rawEntry{name: "a", extra: field(0x7075, "\x02abcde")}), "version 1"},
		{"A30 trailing", rawZip{entries: []rawEntry{a}, suffix: "x"}, "other bytes follow"},
		{"A30 between", rawZip{entries: []rawEntry{a}, between: "x"}, "does not end where"},
		{"A31 gap", with(rawEntry{name: "a", data: "one", gap: "hidden"}), "want the next record there"},
		{"A31 large gap", with(rawEntry{name: "a", data: "one", gap: strings.Repeat("x", 70_000)}), "belong to nothing"},
		{"A31 hidden entry", rawZip{entries: []rawEntry{a, {name: "h", data: "hidden", hide: true}, b}}, "want the next record there"},
		{"A32 second end record", rawZip{entries: []rawEntry{a}, comment: string(rawZip{}.bytes())}, "two end records"},
		{"A32 signature in the comment", rawZip{entries: []rawEntry{a}, comment: "PK\x05\x06"}, "two end records"},
		{"A32 end record cut", rawZip{entries: []rawEntry{a}, lie: put16(20, 5)}, "cut short"},
		{"A33 disk", with(rawEntry{name: "a", disk: 1}), "lies on disk 1"},
		{"A33 disks", rawZip{entries: []rawEntry{a}, lie: put16(4, 1)}, "one disk of several"},
		{"A33 entries of a disk", rawZip{entries: []rawEntry{a}, lie: put16(8, 0)}, "0 entries on this disk"},
		{"A33 zip64 disks", rawZip{entries: []rawEntry{a}, zip64: true, locator: put32(16, 2)}, "one disk of several"},
		{"A33 zip64 disk", rawZip{entries: []rawEntry{a}, zip64: true, lie64: put32(16, 1)}, "one disk of several"},
		{"A33 zip64 entries", rawZip{entries: []rawEntry{a}, zip64: true, lie64: put32(24, 9)}, "9 entries on this disk"},
		{"A33 zip64 disagrees", rawZip{entries: []rawEntry{a}, zip64: true, lie: func(e []byte) { put16(8, 9)(e); put16(10, 9)(e) }}, "disagree on the count"},
		{"A33 locator elsewhere", rawZip{entries: []rawEntry{a}, zip64: true, locator: put32(8, 0)}, "zip64 locator points to 0"},
		{"A33 zip64 record of another size", rawZip{entries: []rawEntry{a}, zip64: true, lie64: put32(4, 60)}, "not one of 56 bytes"},
		{"A34 symlink", with(rawEntry{name: "a", mode: 0o120777 << 16}), "no regular file's"},
		{"A34 device", with(rawEntry{name: "a", mode: 0o20644 << 16}), "no regular file's"},
		{"A35 folder with data", with(rawEntry{name: "d/", data: "x"}), "folder with 1 bytes"},
		{"A35 folder by its mode", with(rawEntry{name: "d", mode: 0x10}), "marked as a folder"},
		{"A35 folder that is a file", with(rawEntry{name: "d/", mode: 0o100644 << 16}), "ends in /"},
		{"A36 entries", rawZip{entries: many(101)}, "holds 101 entries, want at most 100"},
		{"extra field cut", with(rawEntry{name: "a", extra: "\x01\x02\xff\x00"}), "cut short"},
		{"extra field's end", with(rawEntry{name: "a", extra: "\x01"}), "in the middle of one"},
		{"no local header", with(rawEntry{name: "a", local: local{lie: put32(0, 1)}}), "no local header"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := check(c.z.bytes())
			if !errors.Is(err, zipdir.ErrFormat) || !anyOf(err.Error(), c.want) {
				t.Errorf("got %v, want a format error with %q", err, c.want)
			}
			if err != nil && !errtext.Printable(err.Error()) {
				t.Errorf("%q is no line for a terminal", err.Error())
			}
		})
	}
}

func anyOf(s, wants string) bool {
	for want := range strings.SplitSeq(wants, "|") {
		if strings.Contains(s, want) {
			return true
		}
	}
	return false
}

func many(n int) []rawEntry {
	entries := make([]rawEntry, n)
	for i := range entries {
		entries[i].name = fmt.Sprint("f", i)
	}
	return entries
}

// TestDirectoryOverTheLimit: its size is refused before it is read.
func TestDirectoryOverTheLimit(t *testing.T) {
	b := rawZip{entries: []rawEntry{{name: "a", comment: strings.Repeat("x", 1000)}}}.bytes()
	_, err := zipdir.Read(bytes.NewReader(b), int64(len(b)), zipdir.Limits{Entries: 1, DirectoryBytes: 1000})
	if !errors.Is(err, zipdir.ErrFormat) || !strings.Contains(err.Error(), "want at most 1000") {
		t.Errorf("got %v", err)
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
		d, err := check(b)
		if err != nil {
			t.Fatal(err)
		}
		for i, record := range modeltest.Records(t, b) {
			e := d.Files[i]
			if e.Name != record.Name || e.Size != int64(len(record.Data)) || e.Data()%64 != 0 {
				t.Errorf("%s: got %+v at %d", record.Name, e, e.Data())
			}
			if e.Method == zipdir.Stored && !bytes.Equal(b[e.Data():e.Data()+e.Size], record.Data) {
				t.Errorf("%s: other bytes at %d", record.Name, e.Data())
			}
		}
	}
}

// TestOneRead: a directory that lies in the tail is one read; a longer one is
// read in pieces, never whole.
func TestOneRead(t *testing.T) {
	entries := many(50)
	b := rawZip{entries: entries}.bytes()
	r := &counting{r: bytes.NewReader(b)}
	if _, err := zipdir.Read(r, int64(len(b)), limits); err != nil || r.reads != 1 {
		t.Errorf("%d reads, %v", r.reads, err)
	}
	for i := range entries {
		entries[i].comment = strings.Repeat("c", 10_000)
	}
	b = rawZip{entries: entries}.bytes()
	r = &counting{r: bytes.NewReader(b)}
	d, err := zipdir.Read(r, int64(len(b)), limits)
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
	entries := many(50)
	for i := range entries {
		entries[i].comment = strings.Repeat("c", 10_000)
	}
	b := rawZip{entries: entries}.bytes()
	for n := range 3 {
		broken := errors.New("connection reset")
		_, err := zipdir.Read(&failing{bytes.NewReader(b), n, broken}, int64(len(b)), limits)
		if !errors.Is(err, broken) || errors.Is(err, zipdir.ErrFormat) {
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
	a := rawEntry{name: "a", data: "one"}
	f.Add(rawZip{}.bytes())
	f.Add(rawZip{entries: []rawEntry{a, {name: "s", data: "two", flags: 0x808, local: local{after: descriptor("two")}}}, zip64: true}.bytes())
	f.Add(rawZip{entries: []rawEntry{{name: "d/"}, {name: "d/b", data: "x", extra: field(1, u64(1, 1, 32)), lie: func(d []byte) { copy(d[20:28], "\xff\xff\xff\xff\xff\xff\xff\xff") }}}}.bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := check(b)
		if err != nil {
			if !errors.Is(err, zipdir.ErrFormat) {
				t.Fatalf("got %v, which is of no kind", err)
			}
			return
		}
		for _, e := range d.Files {
			if e.Data() < e.Offset+30 || e.Data()+e.Packed > e.End || e.End > int64(len(b)) {
				t.Fatalf("%+v with data at %d in %d bytes", e, e.Data(), len(b))
			}
		}
	})
}
