package zipdir

import "io"

// firstLook is how much beyond the name is read of a local header at once: the
// padding to a multiple of 64 and a zip64 field lie within it.
const firstLook = 128

// Check reads e's local header and what follows its data from r, the zip, and
// wants both to say what the directory says; it returns where the data begin.
// Once they did, it reads nothing more. Errors of content are an [*Error].
//
// Where a data descriptor follows, sizes and CRC may be zero in the local header;
// the descriptor must fill the space up to the next entry.
func (e *Entry) Check(r io.ReaderAt) (data int64, err error) {
	if data := e.data.Load(); data != 0 {
		return data, nil
	}
	if data, err = e.Locate(r); err == nil {
		err = of(e.Name, e.checkAfter(r, data+e.Packed))
	}
	if err != nil {
		return 0, err
	}
	e.data.Store(data)
	return data, nil
}

// Locate is Check without what follows the data.
func (e *Entry) Locate(r io.ReaderAt) (data int64, err error) {
	name := e.fullName()
	fixed := LocalLen + len(name)
	b := make([]byte, min(int64(fixed+firstLook), e.End-e.Offset))
	if err := readFullAt(r, b, e.Offset); err != nil {
		return 0, of(e.Name, err)
	}
	names, extras := int(le16(b[26:])), int(le16(b[28:]))
	data = e.Offset + int64(LocalLen+names+extras)
	switch {
	case le32(b) != LocalSig:
		err = errorf("its local header does not begin with the signature of one")
	case names != len(name) || string(b[LocalLen:fixed]) != name:
		err = errorf("has another name in its local header")
	case Method(le16(b[8:])) != e.Method:
		err = errorf("has method %d in its local header, %d in the directory", le16(b[8:]), uint16(e.Method))
	case (le16(b[6:])^e.flags)&^flagLevel != 0:
		err = errorf("has flags %#04x in its local header, %#04x in the directory", le16(b[6:]), e.flags)
	case data+e.Packed > e.End:
		err = errorf("its %d bytes overlap what follows", e.Packed)
	case fixed+extras > len(b):
		more := make([]byte, fixed+extras-len(b))
		err = readFullAt(r, more, e.Offset+int64(len(b)))
		b = append(b, more...)
	}
	if err == nil {
		err = e.checkLocal(b[:LocalLen], b[fixed:fixed+extras])
	}
	return data, of(e.Name, err)
}

// checkLocal compares CRC and sizes of the local header h with the directory's.
func (e *Entry) checkLocal(h, extra []byte) error {
	if crc := le32(h[14:]); crc != e.CRC && (!e.Streamed() || crc != 0) {
		return errorf("has CRC %08x in its local header, %08x in the directory", crc, e.CRC)
	}
	packed, size := uint64(le32(h[18:])), uint64(le32(h[22:]))
	seen := false
	err := extraFields(extra, func(id uint16, data []byte) error {
		switch {
		case id == extraName:
			return checkSecondName(e.fullName(), data)
		case id != Extra64:
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
		if s[0] != s[1] && (!e.Streamed() || s[0] != 0) {
			return errorf("has size %d in its local header, %d in the directory", s[0], s[1])
		}
	}
	return nil
}

// localZip64 reads the zip64 field of a local header. APPNOTE 4.5.3 wants both
// sizes in it. PyTorch's writer puts a lone offset there when it streams;
// whatever a streamed entry's field holds must be zero or true. Python before
// 3.11.4 repeats both sizes there (https://github.com/python/cpython/issues/103861).
func (e *Entry) localZip64(packed, size *uint64, data []byte) error {
	asked := *size == Ones32 || *packed == Ones32
	repeats := len(data) == 16 && le64(data) == uint64(e.Size) && le64(data[8:]) == uint64(e.Packed)
	if !asked && !e.Streamed() && !repeats {
		return errorf("zip64 extra field of the local header holds values that it does not ask for")
	}
	for _, v := range []*uint64{size, packed} {
		if *v != Ones32 {
			continue
		}
		if len(data) < 8 {
			return errorf("zip64 extra field of the local header is cut short")
		}
		*v, data = le64(data), data[8:]
	}
	for ; len(data) >= 8; data = data[8:] {
		switch v := le64(data); v {
		case 0, uint64(e.Size), uint64(e.Packed), uint64(e.Offset):
		default:
			return errorf("zip64 extra field of the local header says %d, which is none of the entry's sizes", v)
		}
	}
	if len(data) != 0 && (len(data) != 4 || le32(data) != 0) {
		return errorf("zip64 extra field of the local header has %d bytes too many", len(data))
	}
	return nil
}

// checkAfter checks the bytes from the data's end to the next entry: none, or a
// data descriptor of one of the four forms that writers use (with and without
// signature, sizes in 32 or 64 bits).
func (e *Entry) checkAfter(r io.ReaderAt, at int64) error {
	gap := e.End - at
	switch {
	case !e.Streamed() && gap == 0:
		return nil
	case !e.Streamed():
		return errorf("is followed by %d bytes that belong to no member", gap)
	case gap != 12 && gap != 16 && gap != 20 && gap != maxDescriptor:
		return errorf("is followed by %d bytes, which is no data descriptor", gap)
	}
	b := make([]byte, gap)
	if err := readFullAt(r, b, at); err != nil {
		return err
	}
	if gap == 16 || gap == maxDescriptor {
		if le32(b) != descriptorSig {
			return errorf("is followed by %d bytes, which is no data descriptor", gap)
		}
		b = b[4:]
	}
	if crc := le32(b); crc != e.CRC {
		return errorf("has CRC %08x in its data descriptor, %08x in the directory", crc, e.CRC)
	}
	packed, size := uint64(le32(b[4:])), uint64(le32(b[8:]))
	if len(b) == 20 {
		packed, size = le64(b[4:]), le64(b[12:])
	}
	if packed != uint64(e.Packed) || size != uint64(e.Size) {
		return errorf("has sizes %d and %d in its data descriptor, %d and %d in the directory", packed, size, e.Packed,
			e.Size)
	}
	return nil
}
