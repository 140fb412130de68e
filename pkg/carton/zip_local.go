package carton

import (
	"errors"
	"io"
)

// zipDescriptorMax is the longest data descriptor: signature, CRC, two sizes
// of 64 bits.
const zipDescriptorMax = 24

// checkZipLocal reads e's local header and what lies between e's data and the
// next entry, wants both to say what the central directory says, and sets
// e.data.
//
// Where flag 8 is set, sizes and CRC may be zero in the local header and follow
// the data in a descriptor; it must fill the space up to the next entry.
func checkZipLocal(r io.ReaderAt, e *zipEntry) error {
	name := len(e.name)
	if e.folder {
		name++
	}
	// One read takes header, name and the extra fields of nearly every writer.
	b := make([]byte, min(int64(zipLocalLen+name+64), e.end-e.offset))
	if len(b) < zipLocalLen+name {
		return errorf(ErrFormat, e.name, "its local header overlaps what follows")
	}
	if err := readFullAt(r, b, e.offset); err != nil {
		return of(e.name, err)
	}
	names, extras := int(le16(b[26:])), int(le16(b[28:]))
	data := e.offset + int64(zipLocalLen+names+extras)
	switch {
	case le32(b) != zipLocalSig:
		return errorf(ErrFormat, e.name, "its local header does not begin with the signature of one")
	case names != name || string(b[zipLocalLen:zipLocalLen+len(e.name)]) != e.name || e.folder && b[zipLocalLen+len(e.name)] != '/':
		return errorf(ErrFormat, e.name, "has another name in its local header")
	case le16(b[8:]) != e.method:
		return errorf(ErrFormat, e.name, "has method %d in its local header, %d in the directory", le16(b[8:]), e.method)
	case (le16(b[6:])^e.flags)&^zipFlagLevel != 0:
		return errorf(ErrFormat, e.name, "has flags %#04x in its local header, %#04x in the directory", le16(b[6:]), e.flags)
	case data+e.packed > e.end:
		return errorf(ErrFormat, e.name, "its %d bytes overlap what follows", e.packed)
	}
	if have := len(b) - zipLocalLen - name; extras > have {
		b = append(b, make([]byte, extras-have)...)
		if err := readFullAt(r, b[len(b)-(extras-have):], e.offset+int64(len(b)-(extras-have))); err != nil {
			return of(e.name, err)
		}
	}
	extra := b[zipLocalLen+name : zipLocalLen+name+extras]
	if err := e.checkLocalSizes(b, extra); err != nil {
		return of(e.name, err)
	}
	if err := e.checkAfter(r, data+e.packed); err != nil {
		return of(e.name, err)
	}
	e.data.Store(data)
	return nil
}

// checkLocalSizes compares CRC and sizes of the local header h with the
// directory's.
func (e *zipEntry) checkLocalSizes(h, extra []byte) error {
	streamed := e.flags&zipFlagDescriptor != 0
	if crc := le32(h[14:]); crc != e.crc && (!streamed || crc != 0) {
		return errorf(ErrFormat, "", "has CRC %08x in its local header, %08x in the directory", crc, e.crc)
	}
	packed, size := uint64(le32(h[18:])), uint64(le32(h[22:]))
	seen64 := false
	err := zipExtras(extra, func(id uint16, data []byte) error {
		switch {
		case id == zipExtraName:
			name := e.name
			if e.folder {
				name += "/"
			}
			return checkZipName(name, data)
		case id != zipExtra64:
			return nil
		case seen64:
			return errorf(ErrFormat, "", "has two zip64 extra fields in its local header")
		}
		seen64 = true
		return e.applyLocal64(&packed, &size, data)
	})
	if err != nil {
		return err
	}
	for _, s := range [][2]uint64{{packed, uint64(e.packed)}, {size, uint64(e.size)}} {
		if s[0] != s[1] && (!streamed || s[0] != 0) {
			return errorf(ErrFormat, "", "has size %d in its local header, %d in the directory", s[0], s[1])
		}
	}
	return nil
}

// applyLocal64 reads the zip64 extra field of a local header. APPNOTE 4.5.3
// wants both sizes in it. PyTorch's writer puts a lone offset there when it
// streams; whatever a streamed entry's field holds must be zero or true. Python
// before 3.11.4 repeats both sizes there (https://github.com/python/cpython/issues/103861).
func (e *zipEntry) applyLocal64(packed, size *uint64, data []byte) error {
	if *size == zipOnes32 || *packed == zipOnes32 {
		if len(data) < 8 || (*size == zipOnes32 && *packed == zipOnes32 && len(data) < 16) {
			return errorf(ErrFormat, "", "zip64 extra field of the local header is cut short")
		}
		for _, v := range []*uint64{size, packed} {
			if *v == zipOnes32 {
				*v, data = le64(data), data[8:]
			}
		}
	} else if e.flags&zipFlagDescriptor == 0 && !e.repeats64(data) {
		return errorf(ErrFormat, "", "zip64 extra field of the local header holds values that it does not ask for")
	}
	for ; len(data) >= 8; data = data[8:] {
		switch v := le64(data); v {
		case 0, uint64(e.size), uint64(e.packed), uint64(e.offset):
		default:
			return errorf(ErrFormat, "", "zip64 extra field of the local header says %d, which is none of the entry's sizes", v)
		}
	}
	if len(data) != 0 && (len(data) != 4 || le32(data) != 0) {
		return errorf(ErrFormat, "", "zip64 extra field of the local header has %d bytes too many", len(data))
	}
	return nil
}

// repeats64 reports whether a zip64 extra field holds both sizes and no more.
func (e *zipEntry) repeats64(data []byte) bool {
	return len(data) == 16 && le64(data) == uint64(e.size) && le64(data[8:]) == uint64(e.packed)
}

// checkAfter checks the bytes from e's data's end to the next entry: none, or
// a data descriptor of one of the four forms that writers use (with and
// without signature, sizes in 32 or 64 bits).
func (e *zipEntry) checkAfter(r io.ReaderAt, at int64) error {
	gap := e.end - at
	streamed := e.flags&zipFlagDescriptor != 0
	switch {
	case !streamed && gap == 0:
		return nil
	case !streamed:
		return errorf(ErrFormat, "", "is followed by %d bytes that belong to no member", gap)
	case gap != 12 && gap != 16 && gap != 20 && gap != 24:
		return errorf(ErrFormat, "", "is followed by %d bytes, which is no data descriptor", gap)
	}
	b := make([]byte, gap)
	if err := readFullAt(r, b, at); err != nil {
		return err
	}
	if gap == 16 || gap == 24 {
		if le32(b) != zipDescriptorSig {
			return errorf(ErrFormat, "", "is followed by %d bytes, which is no data descriptor", gap)
		}
		b = b[4:]
	}
	var packed, size uint64
	if crc := le32(b); crc != e.crc {
		return errorf(ErrFormat, "", "has CRC %08x in its data descriptor, %08x in the directory", crc, e.crc)
	}
	if b = b[4:]; len(b) == 16 {
		packed, size = le64(b), le64(b[8:])
	} else {
		packed, size = uint64(le32(b)), uint64(le32(b[4:]))
	}
	if packed != uint64(e.packed) || size != uint64(e.size) {
		return errorf(ErrFormat, "", "has sizes %d and %d in its data descriptor, %d and %d in the directory", packed, size, e.packed, e.size)
	}
	return nil
}

// of says which member an error without a path is about.
func of(path string, err error) error {
	var e *Error
	if errors.As(err, &e) && e.Path == "" {
		named := *e
		named.Path = path
		return &named
	}
	return err
}

// inEntry says which entry of the directory an error without a path is about.
func inEntry(i int64, err error) error {
	var e *Error
	if errors.As(err, &e) && e.Path == "" {
		return errorf(e.Kind, "", "entry %d of the central directory: %s", i, e.Msg)
	}
	return err
}

// cutShort makes the end of a file in the middle of a record ErrFormat.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errorf(ErrFormat, "", "the central directory ends inside")
	}
	return err
}
