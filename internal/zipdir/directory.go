package zipdir

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

// Compression methods that are read, APPNOTE 4.4.5.
const (
	Stored  = 0
	Deflate = 8
)

// General purpose flags, APPNOTE 4.4.4.
const (
	flagEncrypted  = 1 << 0
	flagLevel      = 3 << 1 // how hard the writer tried; says nothing to a reader
	flagDescriptor = 1 << 3 // sizes and CRC follow the data
	flagUTF8       = 1 << 11
)

// Limits on what a directory may hold.
type Limits struct {
	// Entries is the most entries.
	Entries int64
	// DirectoryBytes is the largest directory, in bytes.
	DirectoryBytes int64
}

// Directory is what a zip says that it holds.
type Directory struct {
	// Files are the entries that are no folders, in the directory's order: that
	// in which they were written.
	Files []*Entry

	tail *tail
}

// Entry is one entry of the central directory.
type Entry struct {
	// Name is without the "/" that ends a folder's.
	Name string
	// Method is Stored or Deflate.
	Method uint16
	// CRC is the content's CRC-32.
	CRC uint32
	// Size and Packed are the content's size and what it takes in the zip, in
	// bytes.
	Size, Packed int64
	// Offset is where the local header begins, and End where the next begins or
	// the directory.
	Offset, End int64

	folder bool
	flags  uint16
	zip64  bool // has the extra field
}

// Read reads and checks the directory of a zip of size bytes. It reads the last
// [TailBytes] at once, and more only where the directory is longer. Errors of
// content wrap ErrFormat.
func Read(r io.ReaderAt, size int64, limits Limits) (*Directory, error) {
	t, err := readTail(r, size)
	if err != nil {
		return nil, err
	}
	e, err := readEnd(t, limits)
	if err != nil {
		return nil, err
	}
	entries, err := readEntries(t, e)
	if err != nil {
		return nil, err
	}
	if err := checkNames(entries); err != nil {
		return nil, err
	}
	d := &Directory{tail: t}
	for _, entry := range entries {
		if !entry.folder {
			d.Files = append(d.Files, entry)
		}
	}
	slices.SortStableFunc(entries, func(a, b *Entry) int { return cmp.Compare(a.Offset, b.Offset) })
	return d, checkExtents(entries, e.directory)
}

// ReaderAt returns the zip, its tail held in memory.
func (d *Directory) ReaderAt() io.ReaderAt { return d.tail }

// Tail returns the offset from which on the zip is in memory.
func (d *Directory) Tail() int64 { return d.tail.off }

func readEntries(t *tail, e end) ([]*Entry, error) {
	in := bufio.NewReaderSize(io.NewSectionReader(t, e.directory, e.size), 1<<16)
	entries := make([]*Entry, 0, min(e.entries, 1<<12))
	left := e.size
	for i := range e.entries {
		entry, n, err := readEntry(in, left)
		if err != nil {
			if errors.Is(err, ErrFormat) && entry == nil {
				return nil, errorf("entry %d: %s", i, text(err))
			}
			return nil, err
		}
		left -= n
		entries = append(entries, entry)
	}
	if left != 0 {
		return nil, errorf("%d bytes of the central directory belong to none of its %d entries", left, e.entries)
	}
	return entries, nil
}

// text returns an ErrFormat's text without the kind, for a longer one.
func text(err error) string {
	return strings.TrimPrefix(err.Error(), ErrFormat.Error()+": ")
}

// readEntry reads one entry of at most left bytes and returns its length.
func readEntry(in *bufio.Reader, left int64) (*Entry, int64, error) {
	var h [entryLen]byte
	if left < entryLen {
		return nil, 0, errorf("the central directory ends inside")
	}
	if _, err := io.ReadFull(in, h[:]); err != nil {
		return nil, 0, cutShort(err)
	}
	names, extras, comment := int(le16(h[28:])), int(le16(h[30:])), int(le16(h[32:]))
	length := int64(entryLen + names + extras + comment)
	switch {
	case le32(h[:]) != entrySig:
		return nil, 0, errorf("does not begin with the signature of an entry")
	case length > left:
		return nil, 0, errorf("the central directory ends inside")
	}
	b := make([]byte, names+extras)
	if _, err := io.ReadFull(in, b); err != nil {
		return nil, 0, cutShort(err)
	}
	if _, err := in.Discard(comment); err != nil {
		return nil, 0, cutShort(err)
	}
	e, err := parseEntry(h[:], string(b[:names]), b[names:])
	return e, length, err
}

func cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errorf("the central directory ends inside")
	}
	return err
}

func parseEntry(h []byte, name string, extra []byte) (*Entry, error) {
	e := &Entry{flags: le16(h[8:]), Method: le16(h[10:]), CRC: le32(h[16:])}
	e.Name, e.folder = strings.CutSuffix(name, "/")
	if err := checkName(e.Name); err != nil {
		return nil, err
	}
	s := sizes{packed: uint64(le32(h[20:])), size: uint64(le32(h[24:])), offset: uint64(le32(h[42:]))}
	err := extraFields(extra, func(id uint16, data []byte) error {
		switch {
		case id == extra64 && e.zip64:
			return errorf("has two zip64 extra fields")
		case id == extra64:
			e.zip64 = true
			return s.apply(data)
		case id == extraName:
			return checkSecondName(name, data)
		}
		return nil
	})
	if err != nil {
		return nil, e.wrap(err)
	}
	switch {
	case s.size|s.packed|s.offset > 1<<63-1:
		return nil, e.errorf("a size or offset is over 2^63-1")
	case le16(h[34:]) != 0:
		return nil, e.errorf("lies on disk %d", le16(h[34:]))
	}
	e.Size, e.Packed, e.Offset = int64(s.size), int64(s.packed), int64(s.offset)
	if err := e.checkFlags(); err != nil {
		return nil, err
	}
	return e, e.checkType(le32(h[38:]))
}

func (e *Entry) errorf(format string, args ...any) error {
	return errorf("%s: "+format, append([]any{errtext.Quote(e.Name)}, args...)...)
}

// wrap says which entry an error is of.
func (e *Entry) wrap(err error) error {
	if errors.Is(err, ErrFormat) {
		return e.errorf("%s", text(err))
	}
	return err
}

func (e *Entry) checkFlags() error {
	switch {
	case e.flags&flagEncrypted != 0:
		return e.errorf("is encrypted")
	case e.flags&^(flagLevel|flagDescriptor|flagUTF8) != 0:
		return e.errorf("has the flags %#04x, of which some are unknown", e.flags)
	case e.Method != Stored && e.Method != Deflate:
		return e.errorf("has compression method %d, want %d (stored) or %d (deflate)", e.Method, Stored, Deflate)
	case e.Method == Stored && e.Size != e.Packed:
		return e.errorf("is stored, but its sizes are %d and %d", e.Packed, e.Size)
	}
	return nil
}

// checkType reads the kind of file from the upper half of the attributes (a
// Unix mode) and the folder bit of the lower (DOS).
func (e *Entry) checkType(attributes uint32) error {
	const (
		typeMask, regular, folder, dosFolder = 0o170000, 0o100000, 0o040000, 0x10
	)
	mode := attributes >> 16 & typeMask
	switch {
	case e.folder && mode != 0 && mode != folder:
		return e.errorf("ends in / but has the mode %#o", attributes>>16)
	case e.folder && (e.Size != 0 || e.Packed != 0 && (e.Method != Deflate || e.Packed != 2)):
		return e.errorf("is a folder with %d bytes of data", max(e.Size, e.Packed))
	case !e.folder && (mode == folder || attributes&dosFolder != 0):
		return e.errorf("is marked as a folder, but does not end in /")
	case !e.folder && mode != 0 && mode != regular:
		return e.errorf("has the mode %#o, which is no regular file's", attributes>>16)
	}
	return nil
}

// maxLocalExtra is the most that a local header can hold beside the name.
const maxLocalExtra = 1<<16 - 1

// checkExtents wants entries, sorted by offset, to follow each other from byte 0
// to the directory, as far as the directory alone can tell. What lies between
// one's data and the next header is the business of [Entry.Check].
func checkExtents(entries []*Entry, directory int64) error {
	at := int64(0)
	for i, e := range entries {
		if i == 0 && e.Offset != 0 {
			return errorf("%d bytes lie before the first entry", e.Offset)
		}
		e.End = directory
		if i+1 < len(entries) {
			e.End = entries[i+1].Offset
		}
		room := e.End - e.Offset - localLen - int64(len(e.Name)) - e.descriptor()
		if e.folder {
			room--
		}
		switch {
		case e.Offset < at, e.End < e.Offset:
			return e.errorf("begins at %d, inside another that ends at %d", e.Offset, at)
		case e.Packed > room:
			return e.errorf("has %d bytes, which run into what begins at %d", e.Packed, e.End)
		case room-e.Packed > maxLocalExtra:
			return e.errorf("leaves %d bytes up to %d that belong to nothing", room-e.Packed, e.End)
		}
		at = e.End
	}
	if len(entries) == 0 && directory != 0 {
		return errorf("%d bytes lie before the directory of no entries", directory)
	}
	return nil
}

// descriptor returns the length of e's data descriptor as PyTorch's and most
// other writers write it: with a signature, and sizes in 64 bits where the entry
// has a zip64 field. Nothing follows a folder or an empty file.
func (e *Entry) descriptor() int64 {
	switch {
	case e.flags&flagDescriptor == 0:
		return 0
	case e.zip64:
		return 24
	}
	return 16
}

// Data returns where the content's bytes must lie, as the directory alone can
// tell: they end before the data descriptor, and that where the next entry
// begins. [Entry.Check] holds the local header against it.
func (e *Entry) Data() int64 { return e.End - e.descriptor() - e.Packed }
