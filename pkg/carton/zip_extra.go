package carton

import (
	"hash/crc32"
	"slices"
)

// Extra fields with a meaning for reading. The many others (times, owners,
// padding) are passed over.
const (
	zipExtra64   = 0x0001 // APPNOTE 4.5.3: sizes and offset in 64 bits
	zipExtraName = 0x7075 // APPNOTE 4.6.9: the name in UTF-8
)

// zipExtras walks the extra fields b and calls f with each. Bytes too few to
// be a field are allowed where they are zeros, as some aligners leave them.
func zipExtras(b []byte, f func(id uint16, data []byte) error) error {
	for len(b) >= 4 {
		n := int(le16(b[2:]))
		if n > len(b)-4 {
			return errorf(ErrFormat, "", "extra field %#04x is cut short", le16(b))
		}
		if err := f(le16(b), b[4:4+n]); err != nil {
			return err
		}
		b = b[4+n:]
	}
	for _, c := range b {
		if c != 0 {
			return errorf(ErrFormat, "", "extra fields end in the middle of one")
		}
	}
	return nil
}

// zipSizes are the values that the zip64 extra field can hold, in its order.
type zipSizes struct {
	size, packed, offset uint64
}

const zipOnes32 = 1<<32 - 1

// apply replaces those of s that are all ones in 32 bits by the values of a
// central zip64 extra field, which holds them and no others, in order, and
// maybe the disk's number. Go's writer puts all three there and leaves the
// offset as it is: a field of three is read where it repeats what the entry
// says.
func (s *zipSizes) apply(data []byte) error {
	values := []*uint64{&s.size, &s.packed, &s.offset}
	marked := slices.DeleteFunc(slices.Clone(values), func(v *uint64) bool { return *v != zipOnes32 })
	if n := len(data); n%8 == 4 {
		if le32(data[n-4:]) != 0 {
			return errorf(ErrFormat, "", "lies on another disk")
		}
		data = data[:n-4]
	}
	switch {
	case len(marked) == 0:
		return errorf(ErrFormat, "", "zip64 extra field holds values that the entry does not ask for")
	case len(data) == 8*len(marked):
		values = marked
	case len(data) != 8*len(values):
		return errorf(ErrFormat, "", "zip64 extra field is %d bytes, want %d", len(data), 8*len(marked))
	}
	for i, v := range values {
		long := le64(data[8*i:])
		if *v != zipOnes32 && *v != long {
			return errorf(ErrFormat, "", "zip64 extra field says %d where the entry says %d", long, *v)
		}
		*v = long
	}
	return nil
}

// checkZipName refuses an entry whose name in the Unicode extra field is
// another than in its header: readers would see different files.
func checkZipName(name string, data []byte) error {
	if len(data) < 5 || data[0] != 1 {
		return errorf(ErrFormat, name, "Unicode name field is none of version 1")
	}
	if le32(data[1:]) == crc32.ChecksumIEEE([]byte(name)) && string(data[5:]) != name {
		return errorf(ErrFormat, name, "has a second name in its extra fields: %s", quotePath(string(data[5:])))
	}
	return nil
}
