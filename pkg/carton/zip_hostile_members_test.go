package carton_test

import (
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

// brokenMembers are zips whose members can't be a carton's: by their kind, their
// names, where symlinks lead, or what MANIFEST lists.
var brokenMembers = []brokenZip{
	{"device", carton.ErrFormat, "mode", attributes(0o020644 << 16)},
	{"pipe", carton.ErrFormat, "mode", attributes(0o010644 << 16)},
	{"socket", carton.ErrFormat, "mode", attributes(0o140644 << 16)},
	{"folder's mode without a slash", carton.ErrFormat, "marked as a folder", attributes(modeFolder)},
	{"folder's DOS attribute without a slash", carton.ErrFormat, "marked as a folder", attributes(0x10)},
	{"symlink's mode from a DOS host", carton.ErrFormat, "mode", edit(func(z *rawZip) {
		z.files[0].entry.attributes, z.files[0].entry.madeBy = modeSymlink, 20
	})},
	{"folder entry with data", carton.ErrFormat, "folder with 4 bytes", edit(func(z *rawZip) { z.add("model/d/", "data").entry.attributes = modeFolder })},
	{"folder entry with a file's mode", carton.ErrFormat, "ends in /", edit(func(z *rawZip) { z.add("model/d/", "") })},
	{"folder entry with two bytes that are no empty stream", carton.ErrFormat, "folder with", edit(func(z *rawZip) {
		z.add("model/d/", "da").both(func(h *rawHeader) { h.attributes = modeFolder })
	})},

	{"member twice", carton.ErrInsecurePath, "twice", edit(func(z *rawZip) { z.add("model/a", "weights") })},
	{"MANIFEST twice", carton.ErrInsecurePath, "twice", edit(func(z *rawZip) { z.add("MANIFEST", "") })},
	{"members that differ in case", carton.ErrInsecurePath, "only in case", named("model/A")},
	{"second manifest in lower case", carton.ErrInsecurePath, "only in case", named("manifest")},
	{"folders that differ in case", carton.ErrInsecurePath, "only in case", named("Model/b")},
	{"members that differ in full case folding", carton.ErrInsecurePath, "only in case", func(testing.TB) []byte {
		return zipOf("model/stra\u00dfe", "a", "model/STRASSE", "b").bytes()
	}},
	{"members that differ in normalisation", carton.ErrInsecurePath, "normalisation", func(testing.TB) []byte {
		return zipOf("model/\u00e9", "a", "model/e\u0301", "b").bytes()
	}},
	{"file and folder of one name", carton.ErrInsecurePath, "which is a file", named("model/a/b")},
	{"folder entry and file of one name", carton.ErrInsecurePath, "which is a file", edit(func(z *rawZip) {
		z.add("model/a/", "").both(func(h *rawHeader) { h.attributes = modeFolder })
	})},
	{"folder entry twice", carton.ErrInsecurePath, "twice", edit(func(z *rawZip) {
		z.add("model/d/", "").entry.attributes = modeFolder
		z.add("model/d/", "").entry.attributes = modeFolder
	})},
	{"name with ..", carton.ErrInsecurePath, "not clean", named("../evil")},
	{"name with .. inside", carton.ErrInsecurePath, "not clean", named("model/../../evil")},
	{"absolute name", carton.ErrInsecurePath, "absolute", named("/etc/passwd")},
	{"name with a backslash", carton.ErrInsecurePath, "backslash", named(`..\evil`)},
	{"name with a NUL", carton.ErrInsecurePath, "control character", named("model/a\x00b")},
	{"name with a newline", carton.ErrInsecurePath, "control character", named("model/a=0\nmodel/b")},
	{"name with a line separator", carton.ErrInsecurePath, "control character", named("model/a\u2028b")},
	{"name that is not UTF-8", carton.ErrInsecurePath, "not UTF-8", named("model/\xff")},
	{"empty name", carton.ErrInsecurePath, "empty name", named("")},
	{"name .", carton.ErrInsecurePath, "not clean", named(".")},
	{"folder entry named /", carton.ErrInsecurePath, "empty name", named("/")},
	{"name with //", carton.ErrInsecurePath, "not clean", named("model//a")},
	{"folder entry ending in //", carton.ErrInsecurePath, "not clean", named("model/d//")},
	{"component of 256 bytes", carton.ErrInsecurePath, "256 bytes", named("model/" + strings.Repeat("a", 256))},
	{"name of 1,025 bytes", carton.ErrInsecurePath, "1025 bytes", named(strings.Repeat("model/", 170) + "abcde")},
	{"second name in the Unicode field", carton.ErrFormat, "second name", edit(func(z *rawZip) {
		z.files[0].entry.extra = unicodeName("model/a", "model/b")
	})},
	{"second name in the local Unicode field", carton.ErrFormat, "second name", edit(func(z *rawZip) {
		z.files[0].local.extra = unicodeName("model/a", "model/b")
	})},
	{"Unicode name field of version 2", carton.ErrFormat, "version 1", edit(func(z *rawZip) {
		z.files[0].entry.extra = "\x75\x70\x06\x00\x02abcde"
	})},
	{"other name in a folder's local header", carton.ErrFormat, "another name", edit(func(z *rawZip) { z.folder("model/").local.name = "model\\" })},

	{"symlink out of the carton", carton.ErrInsecurePath, "not inside model/", symlinks("model/l", "../../etc/passwd")},
	{"symlink out of model/", carton.ErrInsecurePath, "not inside model/", symlinks("model/l", "../carton.toml")},
	{"symlink outside of model/", carton.ErrInsecurePath, "outside of model/", symlinks("misc/l", "../model/a")},
	{"absolute symlink", carton.ErrInsecurePath, "absolute", symlinks("model/l", "/etc/passwd")},
	{"symlink with a NUL", carton.ErrInsecurePath, "not inside model/", symlinks("model/l", "a\x00b")},
	{"symlink with a backslash", carton.ErrInsecurePath, "not inside model/", symlinks("model/l", `x\..\a`)},
	{"symlink to itself", carton.ErrInsecurePath, "does not end", symlinks("model/l", "l")},
	{"symlinks in a circle", carton.ErrInsecurePath, "does not end", symlinks("model/l", "m", "model/m", "l")},
	{"symlink to a folder", carton.ErrFormat, "to the folder", symlinks("model/x/l", "../d", "model/d/m", "../a")},
	{"symlink through a symlink", carton.ErrFormat, "not in the carton", symlinks("model/d", "a", "model/l", "d/a")},
	{"symlink to nothing", carton.ErrFormat, "not in the carton", symlinks("model/l", "nothing")},
	{"empty symlink", carton.ErrFormat, "no target", symlinks("model/l", "")},
	{"symlink of 2 kB", carton.ErrInsecurePath, "long", symlinks("model/l", strings.Repeat("./", 1000)+"a")},
	{"symlink's CRC is wrong", carton.ErrChecksum, "got CRC", func(testing.TB) []byte {
		z := linked("model/l", "a")
		z.file("model/l").both(func(h *rawHeader) { h.crc++ })
		return z.bytes()
	}},
	{"symlink with a hash of its own", carton.ErrChecksum, "another hash", func(testing.TB) []byte {
		z := zipOf("model/a", "weights", "model/l", "a")
		z.file("model/l").entry.attributes = modeSymlink
		return z.bytes()
	}},
	{"MANIFEST is a symlink", carton.ErrFormat, "is a symlink", edit(func(z *rawZip) { z.file("MANIFEST").entry.attributes = modeSymlink })},

	{"no MANIFEST", carton.ErrFormat, "MANIFEST: is missing", func(testing.TB) []byte {
		z := good()
		z.files = z.files[:2]
		return z.bytes()
	}},
	{"member that MANIFEST does not list", carton.ErrFormat, "not listed in MANIFEST", edit(func(z *rawZip) { z.add("model/extra", "") })},
	{"members that MANIFEST does not list", carton.ErrFormat, "model/extra: and 1 more", edit(func(z *rawZip) {
		z.add("model/more", "")
		z.add("model/extra", "")
	})},
	{"member in neither zip nor LINKS", carton.ErrFormat, "neither in the zip nor in LINKS", func(testing.TB) []byte {
		z := good()
		z.files = z.files[1:]
		return z.bytes()
	}},
	{"broken LINKS", carton.ErrFormat, "LINKS", edit(func(z *rawZip) { z.add("LINKS", "no TOML") })},
	{"LINKS of version 2", carton.ErrVersion, "LINKS", edit(func(z *rawZip) { z.add("LINKS", "version = 2\n[urls]\n") })},
}

func attributes(a uint32) func(testing.TB) []byte {
	return edit(func(z *rawZip) { z.files[0].entry.attributes = a })
}

// named builds a zip with one more member, that MANIFEST lists if it can.
func named(name string) func(testing.TB) []byte {
	return func(testing.TB) []byte { return zipOf("model/a", "weights", name, "more").bytes() }
}

// linked builds a zip of "model/a" and symlinks, pairs of path and target.
func linked(pairs ...string) *rawZip {
	listed := []string{"model/a", "weights"}
	for i := 0; i < len(pairs); i += 2 {
		listed = append(listed, pairs[i], "weights")
	}
	z := zipOf(listed...)
	for i := 0; i < len(pairs); i += 2 {
		var one rawZip
		f := one.add(pairs[i], pairs[i+1])
		f.entry.attributes = modeSymlink
		z.files[i/2+1] = f
	}
	return z
}

func symlinks(pairs ...string) func(testing.TB) []byte {
	return func(testing.TB) []byte { return linked(pairs...).bytes() }
}

// unicodeName is an Info-ZIP Unicode path field for the name in the header.
func unicodeName(header, name string) string {
	data := string(le([]byte{1}, crc(header))) + name
	return string(le(nil, uint16(0x7075), uint16(len(data)))) + data
}
