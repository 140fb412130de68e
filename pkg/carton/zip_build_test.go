package carton_test

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/klauspost/compress/zstd"
)

// rawZip is a zip of which every field can be wrong. A test makes a good one,
// breaks one thing, and takes the bytes.
type rawZip struct {
	files    []*rawFile
	between  string // after the members, before the central directory
	behind   string // after the central directory, before the end records
	comment  string
	trailing string
	zip64    bool
	end      func(e *rawEnd) // changes the end records before they are written
}

// rawFile is one member: its local header, what follows it, and its entry in
// the central directory.
type rawFile struct {
	local, entry rawHeader
	before       string // bytes before the local header
	packed       []byte
	after        string // data descriptor, or what should not be there
	offset       func(at uint64) uint64
	unlisted     bool // no entry
	ghost        bool // no local header or data
}

type rawHeader struct {
	sig                    uint32
	madeBy, need           uint16
	flags, method          uint16
	time, date             uint16
	crc, packed, size      uint32
	name                   string
	extra                  string
	comment                string
	disk, internal         uint16
	attributes, offset     uint32
	nameLen, extraLen, com int // added to the lengths
}

type rawEnd struct {
	disk, start, here, entries uint64
	size, directory            uint64
	comment                    int // added to the comment's length
	sig64, locator             uint32
	size64, at64               uint64 // of the zip64 record: its length field, added to its offset
	disks                      uint32
	short                      bool // the end record says the same in short form
}

const (
	flagDescriptor = 1 << 3
	flagUTF8       = 1 << 11
	modeFile       = 0o100644 << 16
	modeFolder     = 0o040755 << 16
	modeSymlink    = 0o120777 << 16
	madeByUnix     = 3<<8 | 20
)

// zipOf makes a carton of the members in the order given, pairs of path and
// content, and of the MANIFEST that lists them.
func zipOf(pairs ...string) *rawZip {
	z := &rawZip{}
	for i := 0; i < len(pairs); i += 2 {
		z.add(pairs[i], pairs[i+1])
	}
	z.add(carton.ManifestName, manifestOf(pairs...))
	return z
}

// good is a small carton to break: "model/a" is its first member.
func good() *rawZip {
	return zipOf("model/a", "weights", carton.InfoName, minimalInfo)
}

const minimalInfo = `spec_version = 1
[runner]
runner_name = "torchscript"
required_framework_version = "=1.12.1"
runner_compat_version = 2
`

// manifestOf lists pairs of path and content. A content that begins with
// "link:" is that of a member listed with the hash of what follows.
func manifestOf(pairs ...string) string {
	var lines []string
	for i := 0; i < len(pairs); i += 2 {
		lines = append(lines, pairs[i]+"="+hashOf(pairs[i+1])+"\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func hashOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// add appends a stored member.
func (z *rawZip) add(name, content string) *rawFile {
	h := rawHeader{
		madeBy: madeByUnix, need: 20, flags: flagUTF8, date: 0x21, attributes: modeFile, name: name,
		crc: crc32.ChecksumIEEE([]byte(content)), packed: uint32(len(content)), size: uint32(len(content)),
	}
	f := &rawFile{local: h, entry: h, packed: []byte(content)}
	f.local.sig, f.entry.sig = 0x04034b50, 0x02014b50
	z.files = append(z.files, f)
	return f
}

func (z *rawZip) file(name string) *rawFile {
	for _, f := range z.files {
		if f.entry.name == name {
			return f
		}
	}
	panic("no " + name)
}

// both changes the local header and the entry alike.
func (f *rawFile) both(change func(h *rawHeader)) *rawFile {
	change(&f.local)
	change(&f.entry)
	return f
}

// compress packs the content, and changes nothing else but what says so.
func (f *rawFile) compress(t testing.TB, method uint16) *rawFile {
	t.Helper()
	content := f.packed
	switch method {
	case 8:
		var b bytes.Buffer
		w, err := flate.NewWriter(&b, flate.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		f.packed = b.Bytes()
	case 93:
		w, err := zstd.NewWriter(nil, zstd.WithZeroFrames(true))
		if err != nil {
			t.Fatal(err)
		}
		f.packed = w.EncodeAll(content, nil)
	}
	return f.both(func(h *rawHeader) { h.method, h.packed = method, uint32(len(f.packed)) })
}

// stream makes the member one whose sizes and CRC follow its data, in a
// descriptor of the given length: 12, 16, 20 or 24 bytes.
func (f *rawFile) stream(length int) *rawFile {
	f.both(func(h *rawHeader) { h.flags |= flagDescriptor })
	e := f.entry
	f.local.crc, f.local.packed, f.local.size = 0, 0, 0
	var b []byte
	if length == 16 || length == 24 {
		b = le(b, uint32(0x08074b50))
	}
	b = le(b, e.crc)
	if length >= 20 {
		b = le(b, uint64(e.packed), uint64(e.size))
	} else {
		b = le(b, e.packed, e.size)
	}
	f.after = string(b)
	return f
}

// le appends values, little-endian.
func le(b []byte, values ...any) []byte {
	for _, v := range values {
		b, _ = binary.Append(b, binary.LittleEndian, v)
	}
	return b
}

// extra64 is a zip64 extra field.
func extra64(values ...uint64) string {
	b := le(nil, uint16(1), uint16(8*len(values)))
	for _, v := range values {
		b = le(b, v)
	}
	return string(b)
}

// bytes writes the zip.
func (z *rawZip) bytes() []byte {
	var b []byte
	for _, f := range z.files {
		b = append(b, f.before...)
		at := uint64(len(b))
		if f.offset != nil {
			at = f.offset(at)
		}
		f.entry.offset = uint32(at)
		if f.ghost {
			continue
		}
		h := f.local
		b = le(b, h.sig, h.need, h.flags, h.method, h.time, h.date, h.crc, h.packed, h.size,
			uint16(len(h.name)+h.nameLen), uint16(len(h.extra)+h.extraLen))
		b = append(b, h.name+h.extra...)
		b = append(b, f.packed...)
		b = append(b, f.after...)
	}
	b = append(b, z.between...)
	e := &rawEnd{directory: uint64(len(b)), sig64: 0x06064b50, locator: 0x07064b50, size64: 44, disks: 1}
	for _, f := range z.files {
		if f.unlisted {
			continue
		}
		e.entries++
		h := f.entry
		b = le(b, h.sig, h.madeBy, h.need, h.flags, h.method, h.time, h.date, h.crc, h.packed, h.size,
			uint16(len(h.name)+h.nameLen), uint16(len(h.extra)+h.extraLen), uint16(len(h.comment)+h.com),
			h.disk, h.internal, h.attributes, h.offset)
		b = append(b, h.name+h.extra+h.comment...)
	}
	e.size = uint64(len(b)) - e.directory
	e.here = e.entries
	if z.end != nil {
		z.end(e)
	}
	return z.appendEnd(append(b, z.behind...), e)
}

func (z *rawZip) appendEnd(b []byte, e *rawEnd) []byte {
	short := *e
	if z.zip64 {
		at := uint64(len(b)) + e.at64
		b = le(b, e.sig64, e.size64, uint16(45), uint16(45), uint32(e.disk), uint32(e.start), e.here, e.entries, e.size, e.directory)
		b = le(b, e.locator, uint32(0), at, e.disks)
		if !e.short {
			short.here, short.entries, short.size, short.directory = 1<<16-1, 1<<16-1, 1<<32-1, 1<<32-1
		}
	}
	b = le(b, uint32(0x06054b50), uint16(short.disk), uint16(short.start), uint16(short.here), uint16(short.entries),
		uint32(short.size), uint32(short.directory), uint16(len(z.comment)+e.comment))
	return append(append(b, z.comment...), z.trailing...)
}

// openBoth reads a zip with both readers, which must agree, and then every member.
func openBoth(t testing.TB, b []byte) (carton.Source, error) {
	t.Helper()
	src, err := carton.NewReader(bytes.NewReader(b), int64(len(b)))
	if err == nil {
		err = readMembers(t.Context(), src)
	}
	lazy, lazyErr := carton.NewLazyReader(bytes.NewReader(b), int64(len(b)))
	if lazyErr == nil {
		lazyErr = readMembers(t.Context(), lazy)
	}
	if lazyErr != nil && err == nil {
		t.Errorf("NewReader accepts what NewLazyReader does not: %v", lazyErr)
	}
	if err != nil {
		return nil, err
	}
	return src, nil
}

func crc(s string) uint32 { return crc32.ChecksumIEEE([]byte(s)) }
