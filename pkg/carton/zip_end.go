package carton

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Records of a zip, with the section of PKWARE's APPNOTE.TXT 6.3.10 that
// defines them (https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT).
// Lengths are those of the fixed part, in bytes.
const (
	zipLocalSig      = 0x04034b50 // 4.3.7
	zipDescriptorSig = 0x08074b50 // 4.3.9
	zipEntrySig      = 0x02014b50 // 4.3.12
	zipEnd64Sig      = 0x06064b50 // 4.3.14
	zipLocator64Sig  = 0x07064b50 // 4.3.15
	zipEndSig        = 0x06054b50 // 4.3.16

	zipLocalLen     = 30
	zipEntryLen     = 46
	zipEnd64Len     = 56
	zipLocator64Len = 20
	zipEndLen       = 22

	// zipTailLen is how much of the end is read at once: every end record with
	// the longest comment lies within it, and so do the small files that a
	// canonical carton puts last.
	zipTailLen = 1<<16 + 2048
)

// zipEnd is what the end records say, checked against each other and against
// where they lie.
type zipEnd struct {
	entries   int64 // in the central directory
	directory int64 // offset of the central directory
	size      int64 // of the central directory, in bytes
}

// zipTail is the end of a zip, kept in memory while it is opened: a source over
// HTTP then pays one request for a small carton.
type zipTail struct {
	r   io.ReaderAt
	off int64
	b   []byte
}

func readZipTail(r io.ReaderAt, size int64) (*zipTail, error) {
	n := min(size, zipTailLen)
	t := &zipTail{r: r, off: size - n, b: make([]byte, n)}
	if err := readFullAt(r, t.b, t.off); err != nil {
		return nil, err
	}
	return t, nil
}

// ReadAt implements io.ReaderAt over the whole zip.
func (t *zipTail) ReadAt(b []byte, off int64) (int, error) {
	if off < t.off || off > t.off+int64(len(t.b)) {
		return t.r.ReadAt(b, off)
	}
	n := copy(b, t.b[off-t.off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// readFullAt fills b from offset off.
func readFullAt(r io.ReaderAt, b []byte, off int64) error {
	n, err := r.ReadAt(b, off)
	switch {
	case n == len(b):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return errorf(ErrFormat, "", "ends at byte %d, in the middle of a record", off+int64(n))
	}
	return fmt.Errorf("read %d bytes at %d: %w", len(b), off, err)
}

// readZipEnd finds the one end record. There must be nothing behind it but its
// comment, and no second record that another reader could take for it.
func readZipEnd(t *zipTail) (zipEnd, error) {
	pos, err := findZipEnd(t.b)
	if err != nil {
		return zipEnd{}, err
	}
	b := t.b[pos:]
	disks := [2]uint16{le16(b[4:]), le16(b[6:])}
	here, entries := le16(b[8:]), le16(b[10:])
	e := zipEnd{entries: int64(entries), size: int64(le32(b[12:])), directory: int64(le32(b[16:]))}
	stop := t.off + int64(pos) // where the directory must end
	at := pos - zipLocator64Len
	has64 := at >= 0 && le32(t.b[at:]) == zipLocator64Sig
	for _, d := range disks {
		if d != 0 && (!has64 || d != 1<<16-1) {
			return zipEnd{}, errorf(ErrFormat, "", "is one disk of several")
		}
	}
	if here != entries {
		return zipEnd{}, errorf(ErrFormat, "", "end record counts %d entries on this disk, %d in all", here, entries)
	}
	if has64 {
		if e, err = readZipEnd64(t, at, e); err != nil {
			return zipEnd{}, err
		}
		stop = t.off + int64(at) - zipEnd64Len
	}
	switch {
	case e.entries > MaxMembers+2: // MANIFEST and LINKS
		return zipEnd{}, errorf(ErrLimit, "", "holds %d files, want at most %d", e.entries, MaxMembers)
	case e.size > MaxDirectoryBytes:
		return zipEnd{}, errorf(ErrLimit, "", "central directory is %d bytes, want at most %d", e.size, MaxDirectoryBytes)
	case e.directory > stop || e.size != stop-e.directory:
		return zipEnd{}, errorf(ErrFormat, "", "central directory of %d bytes at %d does not end where the end record begins, at %d", e.size, e.directory, stop)
	case e.size/zipEntryLen < e.entries:
		return zipEnd{}, errorf(ErrFormat, "", "central directory of %d bytes can't hold %d entries", e.size, e.entries)
	}
	return e, nil
}

// findZipEnd returns the position of the end record in the last bytes of a zip.
func findZipEnd(b []byte) (int, error) {
	sig := binary.LittleEndian.AppendUint32(nil, zipEndSig)
	found, cut := -1, false
	for rest := b; ; {
		i := bytes.LastIndex(rest, sig)
		if i < 0 {
			break
		}
		rest = b[:i+len(sig)-1]
		switch left := len(b) - i - zipEndLen; {
		case left < 0 || int(le16(b[i+20:])) > left:
			cut = true
		case int(le16(b[i+20:])) < left:
		case found >= 0:
			return 0, errorf(ErrFormat, "", "has two end records")
		default:
			found = i
		}
	}
	switch {
	case found < 0 && cut:
		return 0, errorf(ErrFormat, "", "end record is cut short")
	case found < 0 && bytes.Contains(b, sig):
		return 0, errorf(ErrFormat, "", "other bytes follow the end record")
	case found < 0:
		return 0, errorf(ErrFormat, "", "is no zip, or is cut short: it has no end record")
	case bytes.Contains(b[found+zipEndLen:], sig):
		return 0, errorf(ErrFormat, "", "has two end records, one in the comment")
	}
	return found, nil
}

// readZipEnd64 reads the zip64 records before the locator at position at of
// the tail. What the end record says in 16 or 32 bits must be the same, or all
// ones.
func readZipEnd64(t *zipTail, at int, short zipEnd) (zipEnd, error) {
	begin := at - zipEnd64Len
	l := t.b[at:]
	switch {
	case le32(l[4:]) != 0 || le32(l[16:]) != 1:
		return short, errorf(ErrFormat, "", "is one disk of several")
	case begin < 0 || le64(l[8:]) != uint64(t.off)+uint64(begin):
		return short, errorf(ErrFormat, "", "zip64 locator points to %d, want the record just before it", le64(l[8:]))
	}
	b := t.b[begin:at]
	switch {
	case le32(b) != zipEnd64Sig || le64(b[4:]) != zipEnd64Len-12:
		return short, errorf(ErrFormat, "", "zip64 end record is not one of %d bytes", zipEnd64Len)
	case le32(b[16:]) != 0 || le32(b[20:]) != 0:
		return short, errorf(ErrFormat, "", "is one disk of several")
	case le64(b[24:]) != le64(b[32:]):
		return short, errorf(ErrFormat, "", "zip64 end record counts %d entries on this disk, %d in all", le64(b[24:]), le64(b[32:]))
	}
	for _, f := range []struct {
		name  string
		short int64
		ones  int64
		long  uint64
	}{
		{"count of entries", short.entries, 1<<16 - 1, le64(b[32:])},
		{"size of the directory", short.size, 1<<32 - 1, le64(b[40:])},
		{"offset of the directory", short.directory, 1<<32 - 1, le64(b[48:])},
	} {
		if f.long > 1<<63-1 || f.short != f.ones && uint64(f.short) != f.long {
			return short, errorf(ErrFormat, "", "end records disagree on the %s: %d and %d", f.name, f.short, f.long)
		}
	}
	return zipEnd{entries: int64(le64(b[32:])), size: int64(le64(b[40:])), directory: int64(le64(b[48:]))}, nil
}

func le16(b []byte) uint16 { return binary.LittleEndian.Uint16(b) }
func le32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
func le64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }
