package zipdir

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// TailBytes is how much of the end is read at once: every end record with the
// longest comment lies within it, and mostly the directory and the small files
// before it.
const TailBytes = 1<<16 + 1<<15

// tail is the end of a zip, kept in memory.
type tail struct {
	r   io.ReaderAt
	off int64
	b   []byte
}

func readTail(r io.ReaderAt, size int64) (*tail, error) {
	n := min(size, TailBytes)
	t := &tail{r: r, off: size - n, b: make([]byte, n)}
	return t, readFullAt(r, t.b, t.off)
}

// ReadAt implements io.ReaderAt over the whole zip. What begins in the tail
// comes from memory.
func (t *tail) ReadAt(b []byte, off int64) (int, error) {
	if off < t.off || off > t.off+int64(len(t.b)) {
		return t.r.ReadAt(b, off)
	}
	n := copy(b, t.b[off-t.off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// readFullAt fills b from offset off. A source that ends early is ErrFormat.
func readFullAt(r io.ReaderAt, b []byte, off int64) error {
	n, err := r.ReadAt(b, off)
	switch {
	case n == len(b):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return errorf("ends at byte %d, in the middle of a record", off+int64(n))
	}
	return fmt.Errorf("read %d bytes at %d: %w", len(b), off, err)
}

// end is what the end records say, checked against each other and against where
// they lie.
type end struct {
	entries   int64 // in the central directory
	directory int64 // offset of the central directory
	size      int64 // of the central directory, in bytes
}

// readEnd finds the one end record. There must be nothing behind it but its
// comment, and no second record that another reader could take for it.
func readEnd(t *tail, opts Options) (end, error) {
	pos, err := findEnd(t.b)
	if err != nil {
		return end{}, err
	}
	b := t.b[pos:]
	e := end{entries: int64(le16(b[10:])), size: int64(le32(b[12:])), directory: int64(le32(b[16:]))}
	stop := t.off + int64(pos) // where the directory must end
	at := pos - Locator64Len
	has64 := at >= 0 && le32(t.b[at:]) == Locator64Sig
	for _, d := range [2]uint16{le16(b[4:]), le16(b[6:])} {
		if d != 0 && (!has64 || d != 1<<16-1) {
			return end{}, errorf("is one disk of several")
		}
	}
	if here := le16(b[8:]); int64(here) != e.entries {
		return end{}, errorf("end record counts %d entries on this disk, %d in all", here, e.entries)
	}
	if has64 {
		if e, err = readEnd64(t, at, e); err != nil {
			return end{}, err
		}
		stop = t.off + int64(at) - End64Len
	}
	switch {
	case e.entries > opts.MaxEntries:
		return end{}, limitf("holds %d entries, want at most %d", e.entries, opts.MaxEntries)
	case e.size > opts.MaxDirectoryBytes:
		return end{}, limitf("central directory is %d bytes, want at most %d", e.size, opts.MaxDirectoryBytes)
	case e.directory > stop || e.size != stop-e.directory:
		return end{}, errorf("central directory of %d bytes at %d does not end where the end record begins, at %d",
			e.size, e.directory, stop)
	case e.size/EntryLen < e.entries:
		return end{}, errorf("central directory of %d bytes can't hold %d entries", e.size, e.entries)
	}
	return e, nil
}

// findEnd returns the position of the end record in the last bytes of a zip.
func findEnd(b []byte) (int, error) {
	sig := binary.LittleEndian.AppendUint32(nil, EndSig)
	found, cut := -1, false
	for rest := b; ; {
		i := bytes.LastIndex(rest, sig)
		if i < 0 {
			break
		}
		rest = b[:i+len(sig)-1]
		switch left := len(b) - i - EndLen; {
		case left < 0 || int(le16(b[i+20:])) > left:
			cut = true
		case int(le16(b[i+20:])) < left:
		case found >= 0:
			return 0, errorf("has two end records")
		default:
			found = i
		}
	}
	switch {
	case found < 0 && cut:
		return 0, errorf("end record is cut short")
	case found < 0 && bytes.Contains(b, sig):
		return 0, errorf("other bytes follow the end record")
	case found < 0:
		return 0, errorf("is not a zip, or is cut short: it has no end record")
	case bytes.Contains(b[found+EndLen:], sig):
		return 0, errorf("has two end records, one in the comment")
	}
	return found, nil
}

// readEnd64 reads the zip64 records before the locator at position at of the
// tail. What the end record says in 16 or 32 bits must be the same, or all ones.
func readEnd64(t *tail, at int, short end) (end, error) {
	begin := at - End64Len
	l := t.b[at:]
	switch {
	case le32(l[4:]) != 0 || le32(l[16:]) != 1:
		return short, errorf("is one disk of several")
	case begin < 0 || le64(l[8:]) != uint64(t.off)+uint64(begin):
		return short, errorf("zip64 locator points to %d, want the record just before it", le64(l[8:]))
	}
	b := t.b[begin:at]
	switch {
	case le32(b) != End64Sig || le64(b[4:]) != End64Len-12:
		return short, errorf("zip64 end record is not one of %d bytes", End64Len)
	case le32(b[16:]) != 0 || le32(b[20:]) != 0:
		return short, errorf("is one disk of several")
	case le64(b[24:]) != le64(b[32:]):
		return short, errorf("zip64 end record counts %d entries on this disk, %d in all", le64(b[24:]), le64(b[32:]))
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
			return short, errorf("end records disagree on the %s: %d and %d", f.name, f.short, f.long)
		}
	}
	return end{entries: int64(le64(b[32:])), size: int64(le64(b[40:])), directory: int64(le64(b[48:]))}, nil
}
