package zipdir

import (
	"hash/crc32"
	"slices"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

// Extra fields with a meaning for reading. The many others (times, owners, the
// padding "FB" of PyTorch) are passed over.
const (
	Extra64   = 0x0001 // APPNOTE 4.5.3: sizes and offset in 64 bits
	extraName = 0x7075 // APPNOTE 4.6.9: the name in UTF-8
)

// extraFields walks the extra fields b and calls f with each. Bytes too few to
// be a field are allowed where they are zeros, as some aligners leave them.
func extraFields(b []byte, f func(id uint16, data []byte) error) error {
	for len(b) >= 4 {
		n := int(le16(b[2:]))
		if n > len(b)-4 {
			return errorf("extra field %#04x is cut short", le16(b))
		}
		if err := f(le16(b), b[4:4+n]); err != nil {
			return err
		}
		b = b[4+n:]
	}
	for _, c := range b {
		if c != 0 {
			return errorf("extra fields end in the middle of one")
		}
	}
	return nil
}

// sizes are the values that the zip64 extra field can hold, in its order.
type sizes struct {
	size, packed, offset uint64
}

// apply replaces those of s that are all ones in 32 bits by the values of a
// central zip64 extra field, which holds them and no others, in order, and maybe
// the disk's number. Go's writer puts all three there and leaves the offset as
// it is: a field of three is read where it repeats what the entry says.
func (s *sizes) apply(data []byte) error {
	values := []*uint64{&s.size, &s.packed, &s.offset}
	marked := slices.DeleteFunc(slices.Clone(values), func(v *uint64) bool { return *v != Ones32 })
	if n := len(data); n%8 == 4 {
		if le32(data[n-4:]) != 0 {
			return errorf("lies on another disk")
		}
		data = data[:n-4]
	}
	switch {
	case len(marked) == 0:
		return errorf("zip64 extra field holds values that the entry does not ask for")
	case len(data) == 8*len(marked):
		values = marked
	case len(data) != 8*len(values):
		return errorf("zip64 extra field is %d bytes, want %d", len(data), 8*len(marked))
	}
	for i, v := range values {
		long := le64(data[8*i:])
		if *v != Ones32 && *v != long {
			return errorf("zip64 extra field says %d where the entry says %d", long, *v)
		}
		*v = long
	}
	return nil
}

// checkSecondName refuses an entry whose name in the Unicode extra field is
// another than in its header: readers would see different files.
func checkSecondName(name string, data []byte) error {
	if len(data) < 5 || data[0] != 1 {
		return errorf("Unicode name field is none of version 1")
	}
	if le32(data[1:]) == crc32.ChecksumIEEE([]byte(name)) && string(data[5:]) != name {
		return errorf("has a second name in its extra fields: %s", errtext.Quote(string(data[5:])))
	}
	return nil
}
