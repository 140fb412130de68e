package carton_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

// readMembers reads every member to its end.
func readMembers(ctx context.Context, src carton.Source) error {
	members, err := src.Members(ctx)
	if err != nil {
		return err
	}
	for _, m := range members {
		r, err := src.Open(ctx, m.Path)
		if err != nil {
			return err
		}
		n, err := io.Copy(io.Discard, r)
		r.Close()
		if err != nil {
			return err
		}
		if n != m.Size {
			return errors.New("size of " + m.Path + " is wrong")
		}
	}
	return nil
}

// The zip that each case breaks must be good.
func TestGoodZip(t *testing.T) {
	if _, err := openBoth(t, good().bytes()); err != nil {
		t.Fatal(err)
	}
}

// brokenZips are zips with one thing wrong, named for it. text is part of the
// error, so that it is refused for the right reason.
var brokenZips = slices.Concat(brokenStructure, brokenMembers)

type brokenZip struct {
	name  string
	want  error
	text  string
	build func(t testing.TB) []byte
}

// brokenStructure is what the zip format itself forbids, or should.
var brokenStructure = []brokenZip{
	{"empty file", carton.ErrFormat, "no end record", func(testing.TB) []byte { return nil }},
	{"no zip", carton.ErrFormat, "no end record", func(testing.TB) []byte { return []byte(strings.Repeat("no zip ", 100)) }},
	{"truncated end record", carton.ErrFormat, "cut short", func(testing.TB) []byte {
		b := good().bytes()
		return b[:len(b)-3]
	}},
	{"truncated central directory", carton.ErrFormat, "does not end where the end record begins", func(testing.TB) []byte {
		b := good().bytes()
		return slices.Concat(b[:len(b)-60], b[len(b)-22:])
	}},
	{"entry whose comment is longer than the directory", carton.ErrFormat, "ends inside", edit(func(z *rawZip) { z.files[2].entry.com = 5 })},
	{"directory claims an entry more", carton.ErrFormat, "can't hold", edit(func(z *rawZip) {
		z.end = func(e *rawEnd) { e.here++; e.entries++ }
	})},
	{"directory claims an entry less", carton.ErrFormat, "belong to none of its 2 entries", edit(func(z *rawZip) {
		z.end = func(e *rawEnd) { e.here--; e.entries-- }
	})},
	{"directory claims far too many entries", carton.ErrLimit, "want at most", edit(func(z *rawZip) {
		z.zip64, z.end = true, func(e *rawEnd) { e.here, e.entries = 1<<40, 1<<40 }
	})},
	{"directory can't hold its entries", carton.ErrFormat, "can't hold", edit(func(z *rawZip) {
		z.end = func(e *rawEnd) { e.here, e.entries = 60_000, 60_000 }
	})},
	{"entry without its signature", carton.ErrFormat, "signature", edit(func(z *rawZip) { z.files[0].entry.sig++ })},
	{"entry whose name is longer than the directory", carton.ErrFormat, "ends inside", edit(func(z *rawZip) { z.files[2].entry.nameLen = 500 })},
	{"extra field cut short", carton.ErrFormat, "cut short", edit(func(z *rawZip) { z.files[0].entry.extra = "\x55\x54\x09\x00abc" })},
	{"extra fields end in the middle of one", carton.ErrFormat, "in the middle", edit(func(z *rawZip) { z.files[0].entry.extra = "\x55\x54" })},

	{"two entries at one offset", carton.ErrFormat, "overlap", edit(func(z *rawZip) {
		z.files[1].offset = func(uint64) uint64 { return 0 }
	})},
	{"members overlap in part", carton.ErrFormat, "overlap", edit(func(z *rawZip) {
		z.files[1].offset = func(at uint64) uint64 { return at - 3 }
	})},
	{"member reaches into the directory", carton.ErrFormat, "overlap", edit(func(z *rawZip) {
		z.files[2].both(func(h *rawHeader) { h.packed += 10; h.size += 10 })
	})},
	{"member begins behind the directory", carton.ErrFormat, "belong to no member", edit(func(z *rawZip) {
		z.files[2].offset = func(at uint64) uint64 { return at + 1<<20 }
	})},
	{"first member does not begin at 0", carton.ErrFormat, "before the first member", edit(func(z *rawZip) { z.files[0].before = "junk" })},
	{"junk before the zip", carton.ErrFormat, "does not end where", func(testing.TB) []byte {
		return append([]byte("#!/bin/sh\n"), good().bytes()...)
	}},
	{"bytes behind the end record", carton.ErrFormat, "other bytes follow", edit(func(z *rawZip) { z.trailing = "junk" })},
	{"bytes between members", carton.ErrFormat, "belong to no member", edit(func(z *rawZip) { z.files[1].before = "junk" })},
	{"many bytes between members", carton.ErrFormat, "belong to no member", edit(func(z *rawZip) { z.files[1].before = strings.Repeat("junk", 1<<16) })},
	{"bytes before the directory", carton.ErrFormat, "belong to no member", edit(func(z *rawZip) { z.between = "junk" })},
	{"bytes behind the directory", carton.ErrFormat, "does not end where", edit(func(z *rawZip) { z.behind = "junk" })},
	{"hidden member without an entry", carton.ErrFormat, "belong to no member", edit(func(z *rawZip) {
		f := z.add("model/hidden", "secret")
		f.unlisted = true
	})},
	{"entry without a member", carton.ErrFormat, "overlap", edit(func(z *rawZip) { z.files[1].ghost = true })},
	{"empty directory behind members", carton.ErrFormat, "before the central directory", edit(func(z *rawZip) {
		for _, f := range z.files {
			f.unlisted = true
		}
	})},
	{"zip without members", carton.ErrFormat, "MANIFEST: is missing", func(testing.TB) []byte { return (&rawZip{}).bytes() }},
	{"end record in the comment", carton.ErrFormat, "two end records", edit(func(z *rawZip) {
		z.comment = string((&rawZip{}).bytes())
	})},
	{"signature of an end record in the comment", carton.ErrFormat, "two end records", edit(func(z *rawZip) { z.comment = "PK\x05\x06 is odd" })},
	{"second zip in the comment", carton.ErrFormat, "two end records", edit(func(z *rawZip) { z.comment = string(good().bytes()) })},

	{"disk 1 of the end record", carton.ErrFormat, "disk", edit(func(z *rawZip) { z.end = func(e *rawEnd) { e.disk = 1 } })},
	{"directory on disk 1", carton.ErrFormat, "disk", edit(func(z *rawZip) { z.end = func(e *rawEnd) { e.start = 1 } })},
	{"fewer entries on this disk", carton.ErrFormat, "on this disk", edit(func(z *rawZip) { z.end = func(e *rawEnd) { e.here-- } })},
	{"member on disk 1", carton.ErrFormat, "disk 1", edit(func(z *rawZip) { z.files[0].entry.disk = 1 })},
	{"zip64 end record of disk 1", carton.ErrFormat, "disk", edit64(func(e *rawEnd) { e.disk, e.short = 1, false })},
	{"zip64 locator of two disks", carton.ErrFormat, "disk", edit64(func(e *rawEnd) { e.disks = 2 })},
	{"zip64 locator of no disk", carton.ErrFormat, "disk", edit64(func(e *rawEnd) { e.disks = 0 })},
	{"zip64 locator that points elsewhere", carton.ErrFormat, "locator", edit64(func(e *rawEnd) { e.at64 = 8 })},
	{"zip64 end record without its signature", carton.ErrFormat, "zip64 end record", edit64(func(e *rawEnd) { e.sig64++ })},
	{"zip64 end record of another length", carton.ErrFormat, "zip64 end record", edit64(func(e *rawEnd) { e.size64 = 60 })},
	{"zip64 end record counts fewer on this disk", carton.ErrFormat, "on this disk", edit64(func(e *rawEnd) { e.here-- })},
	{"zip64 directory of 2^63", carton.ErrFormat, "disagree", edit64(func(e *rawEnd) { e.size = 1 << 63 })},
	{"zip64 directory of 1 GiB", carton.ErrLimit, "central directory is", edit64(func(e *rawEnd) { e.size = 1 << 30 })},

	{"other name in the local header", carton.ErrFormat, "another name", edit(func(z *rawZip) { z.files[0].local.name = "model/b" })},
	{"longer name in the local header", carton.ErrFormat, "another name", edit(func(z *rawZip) {
		z.files[0].local.name = "model/ab"
		z.files[0].packed = z.files[0].packed[1:]
	})},
	{"local header without its signature", carton.ErrFormat, "signature", edit(func(z *rawZip) { z.files[0].local.sig++ })},
	{"other size in the local header", carton.ErrFormat, "has size 6", edit(func(z *rawZip) { z.files[0].local.size-- })},
	{"other packed size in the local header", carton.ErrFormat, "has size 8", edit(func(z *rawZip) { z.files[0].local.packed++ })},
	{"zero sizes without a descriptor", carton.ErrFormat, "has size 0", edit(func(z *rawZip) { z.files[0].local.packed, z.files[0].local.size = 0, 0 })},
	{"other CRC in the local header", carton.ErrFormat, "CRC", edit(func(z *rawZip) { z.files[0].local.crc++ })},
	{"other method in the local header", carton.ErrFormat, "has method 8", edit(func(z *rawZip) { z.files[0].local.method = 8 })},
	{"other flags in the local header", carton.ErrFormat, "has flags", edit(func(z *rawZip) { z.files[0].local.flags = 0 })},
	{"long extra field in the local header that reaches into the data", carton.ErrFormat, "overlap", edit(func(z *rawZip) { z.files[0].local.extraLen = 5 })},
	{"local extra field cut short", carton.ErrFormat, "cut short", edit(func(z *rawZip) { z.files[0].local.extra = "\x55\x54\x09\x00abc" })},

	{"says 4 GiB, holds 7 bytes", carton.ErrChecksum, "ends after 7 bytes", func(t testing.TB) []byte {
		z := good()
		z.files[0].compress(t, 8).both(func(h *rawHeader) { h.size = 1<<32 - 2 })
		return z.bytes()
	}},
	{"stored, and sizes differ", carton.ErrFormat, "is stored, but", edit(func(z *rawZip) {
		z.files[0].both(func(h *rawHeader) { h.size = 1<<32 - 2 })
	})},
	{"deflated to more than it says", carton.ErrChecksum, "longer than the 5 bytes", func(t testing.TB) []byte {
		z := good()
		z.files[0].compress(t, 8).both(func(h *rawHeader) { h.size = 5 })
		return z.bytes()
	}},
	{"zstd to more than it says", carton.ErrChecksum, "longer than the 5 bytes", func(t testing.TB) []byte {
		z := good()
		z.files[0].compress(t, 93).both(func(h *rawHeader) { h.size = 5 })
		return z.bytes()
	}},
	{"MANIFEST deflated to more than it says", carton.ErrChecksum, "MANIFEST: is longer than", func(t testing.TB) []byte {
		z := good()
		z.file("MANIFEST").compress(t, 8).both(func(h *rawHeader) { h.size-- })
		return z.bytes()
	}},
	{"bytes behind the deflate stream", carton.ErrChecksum, "more data follows", func(t testing.TB) []byte {
		z := good()
		f := z.files[0].compress(t, 8)
		f.packed = append(f.packed, 0)
		f.both(func(h *rawHeader) { h.packed++ })
		return z.bytes()
	}},
	{"two zstd frames", carton.ErrChecksum, "more data follows", func(t testing.TB) []byte {
		z := good()
		f := z.files[0].compress(t, 93)
		f.packed = append(f.packed, f.packed...)
		f.both(func(h *rawHeader) { h.packed *= 2 })
		return z.bytes()
	}},
	{"corrupt deflate stream", carton.ErrChecksum, "can't be decompressed", func(t testing.TB) []byte {
		z := good()
		z.files[0].compress(t, 8).packed[0] = 0xff
		return z.bytes()
	}},
	{"zstd member that is no frame", carton.ErrChecksum, "can't be decompressed", func(t testing.TB) []byte {
		z := good()
		z.files[0].compress(t, 93).packed[0] = 0xff
		return z.bytes()
	}},
	{"zstd window of 2 GiB", carton.ErrLimit, "window", func(t testing.TB) []byte {
		z := good()
		f := z.files[0].compress(t, 93)
		// Magic, no content size, window descriptor 21 (2^31), one raw block.
		f.packed = slices.Concat([]byte("\x28\xb5\x2f\xfd\x00\xa8"), []byte{7<<3 | 1, 0, 0}, []byte("weights"))
		f.both(func(h *rawHeader) { h.packed = uint32(len(f.packed)) })
		return z.bytes()
	}},
	{"wrong content", carton.ErrChecksum, "got sha256", edit(func(z *rawZip) { z.files[0].packed[0]++ })},
	{"wrong CRC", carton.ErrChecksum, "got CRC", edit(func(z *rawZip) {
		z.files[0].both(func(h *rawHeader) { h.crc++ })
	})},
	{"wrong CRC of MANIFEST", carton.ErrChecksum, "MANIFEST: got CRC", edit(func(z *rawZip) {
		z.file("MANIFEST").both(func(h *rawHeader) { h.crc++ })
	})},

	{"zip64 field that nothing asks for", carton.ErrFormat, "does not ask for", edit(func(z *rawZip) {
		z.files[0].entry.extra = extra64(7, 7)
	})},
	{"zip64 field of three that says another size", carton.ErrFormat, "zip64 extra field says 1000", edit(func(z *rawZip) {
		z.files[0].entry.size = 1<<32 - 1
		z.files[0].entry.extra = extra64(7, 1000, 0)
	})},
	{"zip64 field without the value asked for", carton.ErrFormat, "is 8 bytes, want 16", edit(func(z *rawZip) {
		z.files[0].entry.size, z.files[0].entry.packed = 1<<32-1, 1<<32-1
		z.files[0].entry.extra = extra64(7)
	})},
	{"zip64 field with a value too many", carton.ErrFormat, "is 16 bytes, want 8", edit(func(z *rawZip) {
		z.files[0].entry.size = 1<<32 - 1
		z.files[0].entry.extra = extra64(7, 7)
	})},
	{"zip64 field of disk 1", carton.ErrFormat, "disk", edit(func(z *rawZip) {
		z.files[0].entry.size = 1<<32 - 1
		z.files[0].entry.extra = string(le(nil, uint16(1), uint16(12), uint64(7), uint32(1)))
	})},
	{"two zip64 fields", carton.ErrFormat, "two zip64", edit(func(z *rawZip) {
		z.files[0].entry.size = 1<<32 - 1
		z.files[0].entry.extra = extra64(7) + extra64(8)
	})},
	{"zip64 size of 2^63", carton.ErrFormat, "2^63-1", edit(func(z *rawZip) {
		z.files[0].entry.size, z.files[0].entry.packed = 1<<32-1, 1<<32-1
		z.files[0].entry.extra = extra64(1<<63, 1<<63)
	})},
	{"zip64 sizes that overflow together", carton.ErrLimit, "add up", func(t testing.TB) []byte {
		z := good()
		for _, f := range z.files[:2] {
			f.compress(t, 8)
			f.entry.size, f.entry.extra = 1<<32-1, extra64(1<<63-1)
		}
		return z.bytes()
	}},
	{"zip64 offset behind the directory", carton.ErrFormat, "belong to no member", edit(func(z *rawZip) {
		z.files[0].offset = func(uint64) uint64 { return 1<<32 - 1 }
		z.files[0].entry.extra = extra64(1<<63 - 1)
		z.files[1].offset = func(uint64) uint64 { return 0 }
	})},
	{"local zip64 field that nothing asks for", carton.ErrFormat, "does not ask for", edit(func(z *rawZip) { z.files[0].local.extra = extra64(7, 8) })},
	{"local zip64 field of another size", carton.ErrFormat, "has size 8", edit(func(z *rawZip) {
		z.files[0].local.size, z.files[0].local.packed = 1<<32-1, 1<<32-1
		z.files[0].local.extra = extra64(8, 7)
	})},
	{"two local zip64 fields", carton.ErrFormat, "two zip64", edit(func(z *rawZip) { z.files[0].local.extra = extra64(7, 7) + extra64(7, 7) })},
	{"local zip64 field cut short", carton.ErrFormat, "cut short", edit(func(z *rawZip) {
		z.files[0].local.size, z.files[0].local.packed = 1<<32-1, 1<<32-1
		z.files[0].local.extra = extra64(7)
	})},
	{"streamed, and the local zip64 field lies", carton.ErrFormat, "none of the entry's", edit(func(z *rawZip) {
		z.files[0].stream(24).local.extra = extra64(9)
	})},

	{"descriptor with another CRC", carton.ErrFormat, "data descriptor", edit(func(z *rawZip) {
		f := z.files[0].stream(12)
		f.after = "\x00" + f.after[1:]
	})},
	{"descriptor with another size", carton.ErrFormat, "data descriptor", edit(func(z *rawZip) {
		f := z.files[0].stream(24)
		f.after = f.after[:23] + "\x01"
	})},
	{"descriptor without its signature", carton.ErrFormat, "no data descriptor", edit(func(z *rawZip) {
		f := z.files[0].stream(16)
		f.after = "QK" + f.after[2:]
	})},
	{"descriptor of no known length", carton.ErrFormat, "no data descriptor", edit(func(z *rawZip) {
		f := z.files[0].stream(16)
		f.after += "junk"[:2]
	})},
	{"flag of a descriptor, and none there", carton.ErrFormat, "no data descriptor", edit(func(z *rawZip) { z.files[0].stream(16).after = "" })},
	{"streamed, and the local size is another", carton.ErrFormat, "has size 3", edit(func(z *rawZip) { z.files[0].stream(16).local.size = 3 })},
	{"streamed, and the local CRC is another", carton.ErrFormat, "has CRC", edit(func(z *rawZip) { z.files[0].stream(16).local.crc = 3 })},

	{"encrypted", carton.ErrFormat, "encrypted", edit(func(z *rawZip) { z.files[0].both(func(h *rawHeader) { h.flags |= 1 }) })},
	{"strongly encrypted", carton.ErrFormat, "flags", edit(func(z *rawZip) { z.files[0].both(func(h *rawHeader) { h.flags |= 1 << 6 }) })},
	{"patch data", carton.ErrFormat, "flags", edit(func(z *rawZip) { z.files[0].both(func(h *rawHeader) { h.flags |= 1 << 5 }) })},
	{"masked headers", carton.ErrFormat, "flags", edit(func(z *rawZip) { z.files[0].both(func(h *rawHeader) { h.flags |= 1 << 13 }) })},
	{"method 99", carton.ErrFormat, "method 99", edit(func(z *rawZip) { z.files[0].both(func(h *rawHeader) { h.method = 99 }) })},
	{"method 12, bzip2", carton.ErrFormat, "method 12", edit(func(z *rawZip) { z.files[0].both(func(h *rawHeader) { h.method = 12 }) })},
	{"method 14, LZMA", carton.ErrFormat, "method 14", edit(func(z *rawZip) { z.files[0].both(func(h *rawHeader) { h.method = 14 }) })},
}

// edit builds the good zip with a change.
func edit(change func(z *rawZip)) func(testing.TB) []byte {
	return func(testing.TB) []byte {
		z := good()
		change(z)
		return z.bytes()
	}
}

// edit64 builds the good zip with zip64 end records and a change to them.
func edit64(change func(e *rawEnd)) func(testing.TB) []byte {
	return edit(func(z *rawZip) { z.zip64, z.end = true, change })
}

func TestBrokenZips(t *testing.T) {
	for _, c := range brokenZips {
		t.Run(c.name, func(t *testing.T) {
			_, err := openBoth(t, c.build(t))
			checkError(t, err, c.want, c.text)
		})
	}
}

// checkError wants an error of one kind, on one line, that says text.
func checkError(t testing.TB, err, want error, text string) {
	t.Helper()
	switch {
	case err == nil:
		t.Fatalf("no error, want %v", want)
	case !errors.Is(err, want):
		t.Errorf("got %v, want %v", err, want)
	case !strings.Contains(err.Error(), text):
		t.Errorf("got %q, want it to say %q", err, text)
	}
	for _, r := range err.Error() {
		if r < ' ' || r == 0x7f {
			t.Errorf("%q holds the control character %U", err, r)
		}
	}
}
