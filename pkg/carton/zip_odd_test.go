package carton_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

// oddZips are zips that some writer makes, or that harm nobody.
var oddZips = map[string]func(t testing.TB, z *rawZip){
	"archive comment":                 func(_ testing.TB, z *rawZip) { z.comment = "made by hand" },
	"longest archive comment":         func(_ testing.TB, z *rawZip) { z.comment = strings.Repeat("c", 1<<16-1) },
	"member comment":                  func(_ testing.TB, z *rawZip) { z.files[0].entry.comment = "weights" },
	"CRC of 0":                        func(_ testing.TB, z *rawZip) { z.files[0].both(func(h *rawHeader) { h.crc = 0 }) },
	"no attributes":                   func(_ testing.TB, z *rawZip) { z.files[0].entry.attributes = 0 },
	"made by DOS":                     func(_ testing.TB, z *rawZip) { z.files[0].entry.madeBy = 20; z.files[0].entry.attributes = 0x20 },
	"date 1980-00-00":                 func(_ testing.TB, z *rawZip) { z.files[0].both(func(h *rawHeader) { h.date = 0 }) },
	"ASCII name without UTF-8 flag":   func(_ testing.TB, z *rawZip) { z.files[0].both(func(h *rawHeader) { h.flags = 0 }) },
	"level flags in one header only":  func(_ testing.TB, z *rawZip) { z.files[0].local.flags |= 2 },
	"unknown extra fields":            func(_ testing.TB, z *rawZip) { z.files[0].entry.extra = "\xfe\xca\x00\x00UT\x01\x00x" },
	"other extra fields locally":      func(_ testing.TB, z *rawZip) { z.files[0].local.extra = "FB\x03\x00ZZZ" },
	"padding":                         func(_ testing.TB, z *rawZip) { z.files[0].local.extra = padding(100) },
	"padding of 60 kB":                func(_ testing.TB, z *rawZip) { z.files[0].local.extra = padding(60_000) },
	"zeros for padding":               func(_ testing.TB, z *rawZip) { z.files[0].local.extra = "\x00\x00\x00" },
	"true Unicode name":               func(_ testing.TB, z *rawZip) { z.files[0].entry.extra = unicodeName("model/a", "model/a") },
	"stale Unicode name":              func(_ testing.TB, z *rawZip) { z.files[0].entry.extra = unicodeName("other", "model/b") },
	"zip64 end records":               func(_ testing.TB, z *rawZip) { z.zip64 = true },
	"zip64 end records that repeat":   func(_ testing.TB, z *rawZip) { z.zip64, z.end = true, func(e *rawEnd) { e.short = true } },
	"descriptor of 12 bytes":          func(_ testing.TB, z *rawZip) { z.files[0].stream(12) },
	"descriptor of 16 bytes":          func(_ testing.TB, z *rawZip) { z.files[0].stream(16) },
	"descriptor of 20 bytes":          func(_ testing.TB, z *rawZip) { z.files[0].stream(20) },
	"descriptor of 24 bytes":          func(_ testing.TB, z *rawZip) { z.files[0].stream(24) },
	"descriptor of the last member":   func(_ testing.TB, z *rawZip) { z.file("MANIFEST").stream(16) },
	"streamed with sizes":             func(_ testing.TB, z *rawZip) { f := z.files[0]; f.stream(16); f.local.size = f.entry.size },
	"streamed with a lone offset":     func(_ testing.TB, z *rawZip) { z.files[0].stream(24).local.extra = extra64(0) },
	"members in another order":        func(_ testing.TB, z *rawZip) { slices.Reverse(z.files) },
	"zstd":                            func(t testing.TB, z *rawZip) { z.files[0].compress(t, 93) },
	"deflate":                         func(t testing.TB, z *rawZip) { z.files[0].compress(t, 8) },
	"deflated MANIFEST":               func(t testing.TB, z *rawZip) { z.file("MANIFEST").compress(t, 8) },
	"zstd MANIFEST":                   func(t testing.TB, z *rawZip) { z.file("MANIFEST").compress(t, 93) },
	"folder entry":                    func(_ testing.TB, z *rawZip) { z.folder("model/") },
	"folder entry without attributes": func(_ testing.TB, z *rawZip) { z.folder("model/").entry.attributes = 0 },
	"folder entries of empty folders": func(_ testing.TB, z *rawZip) { z.folder("x/y/z/"); z.folder("x/") },
	"deflated folder entry": func(t testing.TB, z *rawZip) {
		f := z.folder("model/")
		f.packed = []byte("\x03\x00")
		f.both(func(h *rawHeader) { h.method, h.packed = 8, 2 }).stream(16)
	},
	"zip64 sizes in both headers": func(_ testing.TB, z *rawZip) {
		z.files[0].both(func(h *rawHeader) { h.size, h.packed, h.extra = 1<<32-1, 1<<32-1, extra64(7, 7) })
	},
	"zip64 sizes and a disk number": func(_ testing.TB, z *rawZip) {
		z.files[0].entry.size = 1<<32 - 1
		z.files[0].entry.extra = string(le(nil, uint16(1), uint16(12), uint64(7), uint32(0)))
	},
	"zip64 sizes and an offset nobody asked for": func(_ testing.TB, z *rawZip) { // Go's writer
		z.files[0].entry.size, z.files[0].entry.packed, z.files[0].entry.extra = 1<<32-1, 1<<32-1, extra64(7, 7, 0)
	},
	"zip64 offset": func(_ testing.TB, z *rawZip) {
		var at uint64
		z.files[1].offset = func(off uint64) uint64 { at = off; return 1<<32 - 1 }
		z.files[2].offset = func(off uint64) uint64 { z.files[1].entry.extra = extra64(at); return off }
	},
}

func padding(n int) string {
	return string(le(nil, uint16(0xa11e), uint16(n), uint16(4096))) + strings.Repeat("\x00", n-2)
}

func (z *rawZip) folder(name string) *rawFile {
	f := z.add(name, "")
	f.entry.attributes = modeFolder | 0x10
	return f
}

func TestOddZips(t *testing.T) {
	want := manifestOf("model/a", "weights", carton.InfoName, minimalInfo)
	for name, change := range oddZips {
		t.Run(name, func(t *testing.T) {
			z := good()
			change(t, z)
			src, err := openBoth(t, z.bytes())
			if err != nil {
				t.Fatal(err)
			}
			if got := string(src.Manifest().Bytes()); got != want {
				t.Errorf("MANIFEST: got %q, want %q", got, want)
			}
			members, err := src.Members(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(members) != 2 {
				t.Errorf("got the members %v, want 2", members)
			}
		})
	}
}

// Names that are odd, and allowed.
func TestOddNames(t *testing.T) {
	for _, name := range []string{
		"model/a=b", "model/=", "model/.carton/carton.lock", "model/...", "model/ ", "model/caf\u00e9",
		"model/cafe\u0301", "model/\u6a21\u578b.bin", "model/CON", "model/a:b", "toplevel", "other/x",
		"model/" + strings.Repeat("a", 255), strings.Repeat("model/", 170) + "abcd", "model/\U0001f973",
	} {
		if _, err := openBoth(t, zipOf(name, "").bytes()); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}
