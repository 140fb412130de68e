package carton

import (
	"bufio"
	"cmp"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"
)

// Compression methods, APPNOTE 4.4.5. A carton has no other.
const (
	zipStored  = 0
	zipDeflate = 8
	zipZstd    = 93
)

// General purpose flags, APPNOTE 4.4.4.
const (
	zipFlagEncrypted  = 1 << 0
	zipFlagLevel      = 3 << 1 // how hard the writer tried; says nothing to a reader
	zipFlagDescriptor = 1 << 3 // sizes and CRC follow the data
	zipFlagUTF8       = 1 << 11
)

// zipEntry is one entry of the central directory.
type zipEntry struct {
	name   string // without the "/" that ends a folder's
	folder bool
	link   bool // a symlink: the data is its target
	flags  uint16
	method uint16
	crc    uint32
	size   int64 // uncompressed
	packed int64 // as it lies in the zip
	offset int64 // of the local header
	end    int64 // where the next local header, or the directory, begins

	// data is the offset of the data, 0 until the local header was checked. It
	// is the one thing that changes after opening.
	data atomic.Int64
}

// readZipDirectory reads and checks the central directory: every entry by
// itself, then names and extents against each other. The result is in the
// order of offsets.
func readZipDirectory(r io.ReaderAt, end zipEnd) ([]*zipEntry, error) {
	d := bufio.NewReaderSize(io.NewSectionReader(r, end.directory, end.size), 1<<16)
	entries := make([]*zipEntry, 0, min(end.entries, 1<<12))
	left := end.size
	for i := range end.entries {
		e, n, err := readZipEntry(d, left)
		if err != nil {
			return nil, inEntry(i, err)
		}
		left -= n
		entries = append(entries, e)
	}
	if left != 0 {
		return nil, errorf(ErrFormat, "", "%d bytes of the central directory belong to none of its %d entries", left, end.entries)
	}
	if err := checkZipNames(entries); err != nil {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b *zipEntry) int { return cmp.Compare(a.offset, b.offset) })
	return entries, checkZipExtents(entries, end.directory)
}

// readZipEntry reads one entry of at most left bytes and returns its length.
func readZipEntry(d *bufio.Reader, left int64) (*zipEntry, int64, error) {
	var h [zipEntryLen]byte
	if left < zipEntryLen {
		return nil, 0, errorf(ErrFormat, "", "the central directory ends inside")
	}
	if _, err := io.ReadFull(d, h[:]); err != nil {
		return nil, 0, cutShort(err)
	}
	names, extras, comment := int(le16(h[28:])), int(le16(h[30:])), int(le16(h[32:]))
	length := int64(zipEntryLen + names + extras + comment)
	switch {
	case le32(h[:]) != zipEntrySig:
		return nil, 0, errorf(ErrFormat, "", "does not begin with the signature of an entry")
	case length > left:
		return nil, 0, errorf(ErrFormat, "", "the central directory ends inside")
	}
	b := make([]byte, names+extras)
	if _, err := io.ReadFull(d, b); err != nil {
		return nil, 0, cutShort(err)
	}
	if _, err := d.Discard(comment); err != nil {
		return nil, 0, cutShort(err)
	}
	e, err := parseZipEntry(h[:], string(b[:names]), b[names:])
	return e, length, err
}

func parseZipEntry(h []byte, name string, extra []byte) (*zipEntry, error) {
	e := &zipEntry{flags: le16(h[8:]), method: le16(h[10:]), crc: le32(h[16:])}
	e.name, e.folder = strings.CutSuffix(name, "/")
	if err := CheckPath(e.name); err != nil {
		return nil, err
	}
	sizes := zipSizes{packed: uint64(le32(h[20:])), size: uint64(le32(h[24:])), offset: uint64(le32(h[42:]))}
	seen64 := false
	err := zipExtras(extra, func(id uint16, data []byte) error {
		switch {
		case id == zipExtra64 && seen64:
			return errorf(ErrFormat, "", "has two zip64 extra fields")
		case id == zipExtra64:
			seen64 = true
			return sizes.apply(data)
		case id == zipExtraName:
			return checkZipName(name, data)
		}
		return nil
	})
	if err != nil {
		return nil, of(e.name, err)
	}
	if sizes.size|sizes.packed|sizes.offset > 1<<63-1 {
		return nil, errorf(ErrFormat, e.name, "a size or offset is over 2^63-1")
	}
	e.size, e.packed, e.offset = int64(sizes.size), int64(sizes.packed), int64(sizes.offset)
	if d := le16(h[34:]); d != 0 {
		return nil, errorf(ErrFormat, e.name, "lies on disk %d, and a carton is one file", d)
	}
	if err := e.checkFlags(); err != nil {
		return nil, err
	}
	return e, e.checkType(le16(h[4:])>>8, le32(h[38:]))
}

// checkFlags refuses what a carton can't be: encrypted, patched, or of another
// compression method.
func (e *zipEntry) checkFlags() error {
	switch {
	case e.flags&zipFlagEncrypted != 0:
		return errorf(ErrFormat, e.name, "is encrypted")
	case e.flags&^(zipFlagLevel|zipFlagDescriptor|zipFlagUTF8) != 0:
		return errorf(ErrFormat, e.name, "has the flags %#04x, of which some are unknown", e.flags)
	case e.method != zipStored && e.method != zipDeflate && e.method != zipZstd:
		return errorf(ErrFormat, e.name, "has compression method %d, want %d (stored), %d (deflate) or %d (zstd)", e.method, zipStored, zipDeflate, zipZstd)
	case e.method == zipStored && e.size != e.packed:
		return errorf(ErrFormat, e.name, "is stored, but its sizes are %d and %d", e.packed, e.size)
	}
	return nil
}

// checkType reads the kind of file from the upper half of the attributes (a
// Unix mode) and the folder bit of the lower (DOS). Readers differ in which of
// them, and of the name's last "/", they believe: all must agree.
func (e *zipEntry) checkType(host uint16, attributes uint32) error {
	const (
		unix, darwin                    = 3, 19 // APPNOTE 4.4.2
		typeMask                        = 0o170000
		typeNone, typeRegular           = 0, 0o100000
		typeFolder, typeLink, dosFolder = 0o040000, 0o120000, 0x10
	)
	mode := attributes >> 16 & typeMask
	switch {
	case e.folder:
		if mode != typeNone && mode != typeFolder {
			return errorf(ErrFormat, e.name, "ends in / but has the mode %#o", attributes>>16)
		}
		// Some writers deflate the nothing that a folder holds, to two bytes.
		if e.size != 0 || e.packed != 0 && (e.method != zipDeflate || e.packed != 2) {
			return errorf(ErrFormat, e.name, "is a folder with %d bytes of data", max(e.size, e.packed))
		}
	case mode == typeFolder || attributes&dosFolder != 0:
		return errorf(ErrFormat, e.name, "is marked as a folder, but does not end in /")
	case mode == typeLink && (host == unix || host == darwin):
		e.link = true
	case mode != typeNone && mode != typeRegular:
		return errorf(ErrFormat, e.name, "has the mode %#o, which is no regular file's or symlink's", attributes>>16)
	}
	return nil
}

// checkZipNames applies the one rule for names to all entries.
func checkZipNames(entries []*zipEntry) error {
	var paths Paths
	for _, e := range entries {
		if e.folder {
			continue
		}
		if err := paths.Add(e.name); err != nil {
			return err
		}
	}
	folders := map[string]bool{}
	for _, e := range entries {
		if !e.folder {
			continue
		}
		if err := paths.addFolder(e.name); err != nil {
			return err
		}
		if folders[e.name] {
			return errorf(ErrInsecurePath, e.name, "folder occurs twice")
		}
		folders[e.name] = true
	}
	return nil
}

// checkZipExtents wants entries, sorted by offset, to follow each other from
// byte 0 to the directory, as far as the directory alone can tell. What lies
// between one's shortest possible end and the next is the business of
// [checkZipLocal].
func checkZipExtents(entries []*zipEntry, directory int64) error {
	var total int64
	for i, e := range entries {
		if i == 0 && e.offset != 0 {
			return errorf(ErrFormat, "", "%d bytes lie before the first member", e.offset)
		}
		e.end = directory
		if i+1 < len(entries) {
			e.end = entries[i+1].offset
		}
		shortest := int64(zipLocalLen + len(e.name))
		longest := shortest + 1<<16 + zipDescriptorMax
		room := e.end - e.offset - e.packed
		switch {
		case e.offset > directory || room < shortest:
			return errorf(ErrFormat, e.name, "its %d bytes overlap what follows", e.packed)
		case room > longest:
			return errorf(ErrFormat, e.name, "is followed by bytes that belong to no member")
		}
		if e.size > 1<<63-1-total {
			return errorf(ErrLimit, e.name, "the members' sizes add up to over 2^63-1 bytes")
		}
		total += e.size
	}
	if len(entries) == 0 && directory != 0 {
		return errorf(ErrFormat, "", "%d bytes lie before the central directory, which is empty", directory)
	}
	return nil
}

// unmarked reports whether other readers may know the entry by another name: it
// is UTF-8, and does not say so. Info-ZIP writes such names. Here they are what
// their bytes say, as MANIFEST must list them.
func (e *zipEntry) unmarked() bool {
	return e.flags&zipFlagUTF8 == 0 && !isASCII(e.name)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
