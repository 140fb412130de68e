package zipdir_test

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
)

// rawEntry is an entry of a zip that is built byte by byte, so that each byte can
// be wrong.
type rawEntry struct {
	name    string
	data    string
	flags   uint16
	method  uint16
	mode    uint32 // external attributes
	disk    uint16
	extra   string // of the directory
	local   local
	lie     func(d []byte) // changes the directory's entry
	gap     string         // bytes behind the entry
	hide    bool           // not in the directory
	offset  int            // added to the directory's offset
	comment string
}

// local is what the local header says otherwise than the directory.
type local struct {
	name  string // "" for the entry's
	extra string
	lie   func(h []byte)
	after string // a data descriptor
}

// rawZip is a zip of such entries.
type rawZip struct {
	prefix  string
	entries []rawEntry
	zip64   bool
	lie     func(end []byte) // changes the end record
	lie64   func(end64 []byte)
	locator func(l []byte)
	comment string
	suffix  string
	between string // directory and end record
}

var le = binary.LittleEndian

func (z rawZip) bytes() []byte {
	b := []byte(z.prefix)
	var directory []byte
	n := 0
	for _, e := range z.entries {
		offset := len(b) + e.offset
		crc := crc32.ChecksumIEEE([]byte(e.data))
		name := e.local.name
		if name == "" {
			name = e.name
		}
		h := header("PK\x03\x04\x14\x00", e.flags, e.method, crc, e.data, name, e.local.extra)
		if e.flags&8 != 0 {
			clear(h[14:26])
		}
		if e.local.lie != nil {
			e.local.lie(h)
		}
		b = append(append(append(b, h...), name...), e.local.extra...)
		b = append(append(append(b, e.data...), e.local.after...), e.gap...)
		if e.hide {
			continue
		}
		d := header("PK\x01\x02\x14\x03\x14\x00", e.flags, e.method, crc, e.data, e.name, e.extra)
		d = le.AppendUint16(d, uint16(len(e.comment)))
		d = le.AppendUint16(d, e.disk)
		d = append(d, 0, 0)
		d = le.AppendUint32(d, e.mode)
		d = le.AppendUint32(d, uint32(offset))
		if e.lie != nil {
			e.lie(d)
		}
		directory = append(append(append(append(directory, d...), e.name...), e.extra...), e.comment...)
		n++
	}
	return append(b, z.end(directory, len(b), n)...)
}

// header is what a local header and a directory's entry have in common.
func header(begin string, flags, method uint16, crc uint32, data, name, extra string) []byte {
	h := le.AppendUint16([]byte(begin), flags)
	h = le.AppendUint16(h, method)
	h = append(h, 0, 0, 0x21, 0)
	for _, v := range []uint32{crc, uint32(len(data)), uint32(len(data))} {
		h = le.AppendUint32(h, v)
	}
	h = le.AppendUint16(h, uint16(len(name)))
	return le.AppendUint16(h, uint16(len(extra)))
}

func (z rawZip) end(directory []byte, offset, n int) []byte {
	b := slices.Concat(directory, []byte(z.between))
	if z.zip64 {
		at := uint64(offset + len(b))
		e := append([]byte("PK\x06\x06"), 44, 0, 0, 0, 0, 0, 0, 0, 45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0)
		for _, v := range []int{n, n, len(directory), offset} {
			e = le.AppendUint64(e, uint64(v))
		}
		if z.lie64 != nil {
			z.lie64(e)
		}
		l := le.AppendUint64([]byte("PK\x06\x07\x00\x00\x00\x00"), at)
		l = le.AppendUint32(l, 1)
		if z.locator != nil {
			z.locator(l)
		}
		b = append(append(b, e...), l...)
	}
	e := []byte("PK\x05\x06\x00\x00\x00\x00")
	e = le.AppendUint16(le.AppendUint16(e, uint16(n)), uint16(n))
	e = le.AppendUint32(le.AppendUint32(e, uint32(len(directory))), uint32(offset))
	e = le.AppendUint16(e, uint16(len(z.comment)))
	if z.lie != nil {
		z.lie(e)
	}
	return append(append(append(b, e...), z.comment...), z.suffix...)
}

// descriptor is a data descriptor with a signature.
func descriptor(data string) string {
	d := le.AppendUint32([]byte("PK\x07\x08"), crc32.ChecksumIEEE([]byte(data)))
	d = le.AppendUint32(d, uint32(len(data)))
	return string(le.AppendUint32(d, uint32(len(data))))
}

// field is an extra field.
func field(id uint16, data string) string {
	b := le.AppendUint16(le.AppendUint16(nil, id), uint16(len(data)))
	return string(b) + data
}

func u64(values ...uint64) string {
	var b []byte
	for _, v := range values {
		b = le.AppendUint64(b, v)
	}
	return string(b)
}

// put32 returns a lie: this number at this place.
func put32(at int, v uint32) func([]byte) {
	return func(b []byte) { le.PutUint32(b[at:], v) }
}

func put16(at int, v uint16) func([]byte) {
	return func(b []byte) { le.PutUint16(b[at:], v) }
}
