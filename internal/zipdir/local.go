package zipdir

import (
	"bytes"
	"io"
)

// firstLook is how much beyond the name is read of a local header at once: the
// padding to a multiple of 64 and a zip64 field lie within it.
const firstLook = 128

// Check reads e's local header from r, the zip, and holds it against the
// directory: name, method, flags, sizes and CRC (zeros under a data descriptor),
// and that the content lies where [Entry.Data] says. Errors of content wrap
// ErrFormat.
func (e *Entry) Check(r io.ReaderAt) error {
	fixed := localLen + len(e.Name)
	b := make([]byte, min(int64(fixed+firstLook), e.End-e.Offset))
	if err := readFullAt(r, b, e.Offset); err != nil {
		return err
	}
	switch names := int(le16(b[26:])); {
	case le32(b) != localSig:
		return e.errorf("has no local header at %d", e.Offset)
	case names != len(e.Name) || string(b[localLen:fixed]) != e.Name:
		return e.errorf("has another name in its local header")
	case le16(b[6:]) != e.flags || le16(b[8:]) != e.Method:
		return e.errorf("has flags %#04x and method %d in its local header, %#04x and %d in the directory", le16(b[6:]), le16(b[8:]), e.flags, e.Method)
	}
	extras := int(le16(b[28:]))
	if at := e.Offset + int64(fixed+extras); at != e.Data() {
		return e.errorf("data begin at %d and would end at %d, want the next record there, at %d", at, at+e.Packed+e.descriptor(), e.End)
	}
	if missing := fixed + extras - len(b); missing > 0 {
		more := make([]byte, missing)
		if err := readFullAt(r, more, e.Offset+int64(len(b))); err != nil {
			return err
		}
		b = append(b, more...)
	}
	return e.wrap(e.checkLocal(b[:localLen], b[fixed:fixed+extras]))
}

// checkLocal compares CRC and sizes of the local header h.
func (e *Entry) checkLocal(h, extra []byte) error {
	streamed := e.flags&flagDescriptor != 0
	if crc := le32(h[14:]); crc != e.CRC && (!streamed || crc != 0) {
		return errorf("has CRC %08x in its local header, %08x in the directory", crc, e.CRC)
	}
	packed, size := uint64(le32(h[18:])), uint64(le32(h[22:]))
	seen := false
	err := extraFields(extra, func(id uint16, data []byte) error {
		switch {
		case id == extraName:
			return checkSecondName(e.Name, data)
		case id != extra64:
			return nil
		case seen:
			return errorf("has two zip64 extra fields in its local header")
		}
		seen = true
		return e.localZip64(&packed, &size, data)
	})
	if err != nil {
		return err
	}
	for _, s := range [][2]uint64{{packed, uint64(e.Packed)}, {size, uint64(e.Size)}} {
		if s[0] != s[1] && (!streamed || s[0] != 0) {
			return errorf("has size %d in its local header, %d in the directory", s[0], s[1])
		}
	}
	return nil
}

// localZip64 reads the zip64 field of a local header. APPNOTE 4.5.3 wants both
// sizes in it, and only where they are marked; PyTorch's writer also puts an
// offset there, and Python's both sizes unasked. Whatever it holds must be zero
// or true.
func (e *Entry) localZip64(packed, size *uint64, data []byte) error {
	for i, v := range []*uint64{size, packed} {
		if *v != ones32 {
			continue
		}
		if len(data) < 8*(i+1) {
			return errorf("zip64 extra field of the local header is cut short")
		}
		*v = le64(data[8*i:])
	}
	for ; len(data) >= 8; data = data[8:] {
		switch v := le64(data); v {
		case 0, uint64(e.Size), uint64(e.Packed), uint64(e.Offset):
		default:
			return errorf("zip64 extra field of the local header says %d, which is none of the entry's sizes", v)
		}
	}
	return nil
}

// CheckDescriptor reads what follows the content and wants there what [Entry.Data]
// took for granted: nothing, or a data descriptor that says what the directory
// says.
func (e *Entry) CheckDescriptor(r io.ReaderAt) error {
	b := make([]byte, e.descriptor())
	if len(b) == 0 {
		return nil
	}
	if err := readFullAt(r, b, e.End-int64(len(b))); err != nil {
		return err
	}
	want := make([]byte, 0, len(b))
	want = put32(put32(want, descriptorSig), e.CRC)
	if len(b) == 16 {
		want = put32(put32(want, uint32(e.Packed)), uint32(e.Size))
	} else {
		want = put64(put64(want, uint64(e.Packed)), uint64(e.Size))
	}
	if !bytes.Equal(b, want) {
		return e.errorf("data descriptor says other sizes or another CRC than the directory")
	}
	return nil
}
