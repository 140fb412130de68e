package zipdir

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
)

// Options say which zips are read.
type Options struct {
	// MaxEntries is the most entries, MaxDirectoryBytes the largest central
	// directory.
	MaxEntries, MaxDirectoryBytes int64
	// Methods are those that an entry may have, nil for Stored and Deflate.
	Methods []Method
	// Symlinks says that entries may be symlinks.
	Symlinks bool
	// Name is given every entry's name, a folder's without its last "/", in the
	// directory's order, and refuses one. It is the only judge of names; nil is
	// the rule of the package's description.
	Name func(name string, folder bool) error
}

// Directory is what a zip says that it holds.
type Directory struct {
	// Files are the entries that are no folders, in the directory's order: that
	// in which they were written.
	Files []*Entry

	entries []*Entry // all, as they lie in the zip
	tail    *tail
}

// Entry is one entry of the central directory.
type Entry struct {
	// Name is without the "/" that ends a folder's.
	Name string
	// CRC is the content's CRC-32.
	CRC uint32
	// Method is how the content is compressed.
	Method Method
	// Symlink says that the content is the target of a symlink.
	Symlink bool
	// Zip64 says that the entry has a zip64 extra field.
	Zip64 bool
	// Size and Packed are the content's size and what it takes in the zip, in
	// bytes.
	Size, Packed int64
	// Offset is where the local header begins, and End where the next begins or
	// the directory.
	Offset, End int64

	folder bool
	flags  uint16
	// data is where the data begin, 0 until Check was content. It is the one
	// thing that changes after Read.
	data atomic.Int64
}

// Streamed reports whether a data descriptor follows the data.
func (e *Entry) Streamed() bool { return e.flags&flagDescriptor != 0 }

// UTF8 reports whether the entry says that its name is UTF-8.
func (e *Entry) UTF8() bool { return e.flags&FlagUTF8 != 0 }

// Read reads and checks the directory of a zip of size bytes. It reads the last
// [TailBytes] at once, and more only where the directory is longer. Errors of
// content are an [*Error], or what Options.Name returned.
func Read(r io.ReaderAt, size int64, opts Options) (*Directory, error) {
	if opts.Methods == nil {
		opts.Methods = []Method{Stored, Deflate}
	}
	if opts.Name == nil {
		opts.Name = (&plainNames{entries: map[string]bool{}, folders: map[string]bool{}}).add
	}
	t, err := readTail(r, size)
	if err != nil {
		return nil, err
	}
	e, err := readEnd(t, opts)
	if err != nil {
		return nil, err
	}
	d := &Directory{tail: t}
	if d.entries, err = readEntries(t, e, opts); err != nil {
		return nil, err
	}
	d.Files = make([]*Entry, 0, len(d.entries))
	for _, entry := range d.entries {
		if !entry.folder {
			d.Files = append(d.Files, entry)
		}
	}
	slices.SortStableFunc(d.entries, func(a, b *Entry) int { return cmp.Compare(a.Offset, b.Offset) })
	return d, checkExtents(d.entries, e.directory)
}

// ReaderAt returns the zip, its tail held in memory.
func (d *Directory) ReaderAt() io.ReaderAt { return d.tail }

// Tail returns the offset from which on the zip is in memory.
func (d *Directory) Tail() int64 { return d.tail.off }

// Check is [Entry.Check] of every entry, folders among them.
func (d *Directory) Check(r io.ReaderAt) error {
	for _, e := range d.entries {
		if _, err := e.Check(r); err != nil {
			return err
		}
	}
	return nil
}

func readEntries(t *tail, e end, opts Options) ([]*Entry, error) {
	in := bufio.NewReaderSize(io.NewSectionReader(t, e.directory, e.size), 1<<16)
	entries := make([]*Entry, 0, min(e.entries, 1<<12))
	left := e.size
	for i := range e.entries {
		entry, n, err := readEntry(in, left, opts)
		var broken *Error
		if errors.As(err, &broken) && broken.Name == "" {
			return nil, &Error{
				Kind: broken.Kind,
				Msg:  fmt.Sprintf("entry %d of the central directory: %s", i, broken.Msg),
			}
		}
		if err != nil {
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

// readEntry reads one entry of at most left bytes and returns its length.
func readEntry(in *bufio.Reader, left int64, opts Options) (*Entry, int64, error) {
	var h [EntryLen]byte
	if left < EntryLen {
		return nil, 0, errorf("the central directory ends inside")
	}
	if _, err := io.ReadFull(in, h[:]); err != nil {
		return nil, 0, cutShort(err)
	}
	names, extras, comment := int(le16(h[28:])), int(le16(h[30:])), int(le16(h[32:]))
	length := int64(EntryLen + names + extras + comment)
	switch {
	case le32(h[:]) != EntrySig:
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
	name, folder := strings.CutSuffix(string(b[:names]), "/")
	if err := opts.Name(name, folder); err != nil {
		return nil, 0, err
	}
	e := &Entry{Name: name, folder: folder}
	return e, length, of(name, e.parse(h[:], b[names:], opts))
}

// parse reads the rest of an entry from its header and its extra fields.
func (e *Entry) parse(h, extra []byte, opts Options) error {
	e.flags, e.Method, e.CRC = le16(h[8:]), Method(le16(h[10:])), le32(h[16:])
	s := sizes{packed: uint64(le32(h[20:])), size: uint64(le32(h[24:])), offset: uint64(le32(h[42:]))}
	err := extraFields(extra, func(id uint16, data []byte) error {
		switch {
		case id == Extra64 && e.Zip64:
			return errorf("has two zip64 extra fields")
		case id == Extra64:
			e.Zip64 = true
			return s.apply(data)
		case id == extraName:
			return checkSecondName(e.fullName(), data)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case s.size|s.packed|s.offset > 1<<63-1:
		return errorf("a size or offset is over 2^63-1")
	case le16(h[34:]) != 0:
		return errorf("lies on disk %d", le16(h[34:]))
	}
	e.Size, e.Packed, e.Offset = int64(s.size), int64(s.packed), int64(s.offset)
	if err := e.checkFlags(opts); err != nil {
		return err
	}
	return e.checkType(le16(h[4:])>>8, le32(h[38:]), opts)
}

// fullName is the name as the zip has it.
func (e *Entry) fullName() string {
	if e.folder {
		return e.Name + "/"
	}
	return e.Name
}

// checkFlags refuses what is encrypted, patched, or of another method.
func (e *Entry) checkFlags(opts Options) error {
	switch {
	case e.flags&flagEncrypted != 0:
		return errorf("is encrypted")
	case e.flags&^(flagLevel|flagDescriptor|FlagUTF8) != 0:
		return errorf("has the flags %#04x, of which some are unknown", e.flags)
	case !slices.Contains(opts.Methods, e.Method):
		return errorf("has compression method %d, want one of %v", uint16(e.Method), opts.Methods)
	case e.Method == Stored && e.Size != e.Packed:
		return errorf("is stored, but its sizes are %d and %d", e.Packed, e.Size)
	}
	return nil
}

// checkType reads the kind of file from the upper half of the attributes (a
// Unix mode) and the folder bit of the lower (DOS). Readers differ in which of
// them, and of the name's last "/", they believe: all must agree.
func (e *Entry) checkType(host uint16, attributes uint32, opts Options) error {
	const (
		unix, darwin                         = 3, 19 // APPNOTE 4.4.2
		typeMask, regular, folder, dosFolder = 0o170000, 0o100000, 0o040000, 0x10
		symlink                              = 0o120000
	)
	mode := attributes >> 16 & typeMask
	switch {
	case e.folder && mode != 0 && mode != folder:
		return errorf("ends in / but has the mode %#o", attributes>>16)
	// Some writers deflate the nothing that a folder holds, to two bytes.
	case e.folder && (e.Size != 0 || e.Packed != 0 && (e.Method != Deflate || e.Packed != 2)):
		return errorf("is a folder with %d bytes of data", max(e.Size, e.Packed))
	case e.folder:
	case mode == folder || attributes&dosFolder != 0:
		return errorf("is marked as a folder, but does not end in /")
	case mode == symlink && opts.Symlinks && (host == unix || host == darwin):
		e.Symlink = true
	case mode != 0 && mode != regular:
		return errorf("has the mode %#o, which is none of a file that is read", attributes>>16)
	}
	return nil
}

// maxLocalExtra is the most that a local header can hold beside the name, and
// maxDescriptor the longest data descriptor: signature, CRC, two sizes of 64
// bits.
const (
	maxLocalExtra = 1<<16 - 1
	maxDescriptor = 24
)

// checkExtents wants entries, sorted by offset, to follow each other from byte 0
// to the directory, as far as the directory alone can tell. What lies between
// one's shortest possible end and the next is the business of [Entry.Check].
func checkExtents(entries []*Entry, directory int64) error {
	var total int64
	for i, e := range entries {
		if i == 0 && e.Offset != 0 {
			return errorf("%d bytes lie before the first member", e.Offset)
		}
		e.End = directory
		if i+1 < len(entries) {
			e.End = entries[i+1].Offset
		}
		shortest := int64(LocalLen + len(e.fullName()))
		longest := shortest + maxLocalExtra
		if e.Streamed() {
			longest += maxDescriptor
		}
		switch room := e.End - e.Offset - e.Packed; {
		case e.Offset > directory || room < shortest:
			return of(e.Name, errorf("its %d bytes overlap what follows", e.Packed))
		case room > longest:
			return of(e.Name, errorf("is followed by bytes that belong to no member"))
		case e.Size > 1<<63-1-total:
			return of(e.Name, limitf("the members' sizes add up to over 2^63-1 bytes"))
		}
		total += e.Size
	}
	if len(entries) == 0 && directory != 0 {
		return errorf("%d bytes lie before the central directory, which is empty", directory)
	}
	return nil
}
