package layout

import (
	"archive/tar"
	"io"
	"math"
	"strings"
)

// TarHeader is an entry of a tar layer that is being read.
type TarHeader struct {
	// TarEntry is the name, size and symlink target as the tar has them, but for
	// a "./" in front and a folder's slash behind, which are taken off. Nothing
	// is said about whether the name is safe to use: the caller checks that.
	TarEntry
	// Folder is true for a folder. The folder "./" itself has the path ".".
	Folder bool
	// Offset is where the content begins in the tar, in bytes.
	Offset int64
}

// TarReader reads tars of any writer, and only what a layer may hold: files,
// folders and symlinks. Hard links, devices, FIFOs, sparse files, setuid files,
// and headers that contradict each other are ErrFormat. So is an end without
// two zero blocks (a truncated tar) and anything but zeros behind them. Owners,
// times and the remaining mode bits are ignored.
//
// archive/tar reads the same tars, but forgives a missing end, data behind it
// and contradictions, and does not say where content lies.
type TarReader struct {
	r       io.Reader
	off     int64 // of r
	left    int64 // content of the current entry still to read
	pad     int64 // bytes from the content's end to the next header
	entries int
	err     error
}

// skipper is a reader that can leave out n bytes more cheaply than by reading.
type skipper interface {
	skip(n int64) error
}

// NewTarReader reads the tar that r gives.
func NewTarReader(r io.Reader) *TarReader { return &TarReader{r: r} }

// Next goes to the next entry, leaving out what was not read of the current
// one. At the end of a whole tar, when nothing but zeros was left up to r's
// io.EOF, it returns io.EOF.
func (t *TarReader) Next() (*TarHeader, error) {
	if t.err != nil {
		return nil, t.err
	}
	h, err := t.next()
	if err != nil {
		t.err = err
		return nil, err
	}
	return h, nil
}

// Read reads the content of the current entry. It returns io.EOF at its end,
// which says nothing about the tar as a whole.
func (t *TarReader) Read(b []byte) (int, error) {
	if t.left == 0 {
		return 0, io.EOF
	}
	if t.err != nil {
		return 0, t.err
	}
	n, err := t.r.Read(b[:min(t.left, int64(len(b)))])
	t.off += int64(n)
	t.left -= int64(n)
	if err == io.EOF { //nolint:errorlint // a wrapped EOF is a fault, not the end
		err = nil
		if t.left > 0 {
			err = truncated(t.off)
		}
	}
	if err != nil {
		t.err = err
	}
	return n, err
}

func (t *TarReader) next() (*TarHeader, error) {
	meta := newTarMeta()
	for n := 0; ; n++ {
		raw, err := t.header()
		if err != nil {
			if err == io.EOF && meta.seen() { //nolint:errorlint // header's own
				return nil, errorf(ErrFormat, "tar", "ends behind an extended header")
			}
			return nil, err
		}
		extended, err := t.extend(&meta, raw)
		if err != nil {
			return nil, err
		}
		if !extended {
			return t.entry(&meta, raw)
		}
		if n == maxTarExtended {
			return nil, errorf(ErrLimit, "tar", "has more than %d extended headers in a row", maxTarExtended)
		}
	}
}

// header reads the next header block, or checks the end and returns io.EOF.
func (t *TarReader) header() (*rawHeader, error) {
	if err := t.skip(t.left + t.pad); err != nil {
		return nil, err
	}
	t.left, t.pad = 0, 0
	var b [blockSize]byte
	if err := t.full(b[:]); err != nil {
		return nil, err
	}
	if !isZero(b[:]) {
		return parseRawHeader(&b)
	}
	if err := t.full(b[:]); err != nil {
		return nil, err
	}
	if !isZero(b[:]) {
		return nil, errorf(ErrFormat, "tar", "has one zero block at its end instead of two")
	}
	return nil, t.zerosToEOF()
}

// extend takes in an extended header; false means that raw is a real entry's.
func (t *TarReader) extend(meta *tarMeta, raw *rawHeader) (bool, error) {
	switch raw.kind {
	case tar.TypeXHeader, tar.TypeXGlobalHeader, tar.TypeGNULongName, tar.TypeGNULongLink:
	default:
		return false, nil
	}
	if raw.size > maxTarMeta {
		return false, errorf(ErrLimit, "tar", "has an extended header of %d bytes; at most %d are read", raw.size,
			maxTarMeta)
	}
	data := make([]byte, raw.size)
	if err := t.full(data); err != nil {
		return false, err
	}
	t.pad = padded(raw.size) - raw.size
	if raw.kind == tar.TypeXGlobalHeader {
		return true, checkGlobalPAX(string(data))
	}
	switch raw.kind {
	case tar.TypeXHeader:
		return true, meta.addPAX(string(data))
	case tar.TypeGNULongName:
		return true, meta.addGNU(&meta.path, string(data), "path")
	}
	return true, meta.addGNU(&meta.link, string(data), "target")
}

// entry makes the header of a file, folder or symlink.
func (t *TarReader) entry(meta *tarMeta, raw *rawHeader) (*TarHeader, error) {
	if t.entries++; t.entries > MaxTarEntries {
		return nil, errorf(ErrLimit, "tar", "has more than %d entries", MaxTarEntries)
	}
	if err := meta.apply(raw); err != nil {
		return nil, err
	}
	if err := raw.check(); err != nil {
		return nil, err
	}
	name, slash := strings.CutSuffix(raw.name, "/")
	folder := raw.kind == tar.TypeDir || (raw.kind == '\x00' && slash) // V7 knew no folders
	h := &TarHeader{TarEntry: TarEntry{Path: name, Size: raw.size}, Folder: folder, Offset: t.off}
	for strings.HasPrefix(h.Path, "./") {
		h.Path = h.Path[2:]
	}
	switch {
	case h.Path == "":
		return nil, errorf(ErrFormat, raw.name, "tar entry has no name")
	case slash && !folder:
		return nil, errorf(ErrFormat, raw.name, "is a file whose name ends in a slash")
	case raw.size > math.MaxInt64/2-t.off:
		return nil, errorf(ErrFormat, raw.name, "is %d bytes, which is too large for a tar", raw.size)
	case (folder || raw.kind == tar.TypeSymlink) && raw.size != 0:
		return nil, errorf(ErrFormat, raw.name, "is a folder or symlink of %d bytes; it has none", raw.size)
	case raw.kind == tar.TypeSymlink && raw.link == "":
		return nil, errorf(ErrFormat, raw.name, "is a symlink without a target")
	case raw.kind == tar.TypeSymlink:
		h.Target = raw.link
	}
	t.left, t.pad = raw.size, padded(raw.size)-raw.size
	return h, nil
}

// full fills b, or says that the tar is truncated.
func (t *TarReader) full(b []byte) error {
	for len(b) > 0 {
		n, err := t.r.Read(b)
		t.off += int64(n)
		b = b[n:]
		switch {
		case len(b) == 0:
		case err == io.EOF:
			return truncated(t.off)
		case err != nil:
			return err
		}
	}
	return nil
}

func (t *TarReader) skip(n int64) error {
	if n == 0 {
		return nil
	}
	if s, ok := t.r.(skipper); ok {
		t.off += n
		return s.skip(n)
	}
	got, err := io.CopyN(io.Discard, t.r, n)
	t.off += got
	if err == io.EOF { //nolint:errorlint // CopyN's own
		return truncated(t.off)
	}
	return err
}

// zerosToEOF wants zeros and nothing else up to the reader's end.
func (t *TarReader) zerosToEOF() error {
	b := make([]byte, 32<<10)
	for {
		n, err := t.r.Read(b)
		t.off += int64(n)
		if !isZero(b[:n]) {
			return errorf(ErrFormat, "tar", "has data behind its end")
		}
		if err != nil {
			return err
		}
	}
}

func truncated(off int64) error {
	return errorf(ErrFormat, "tar", "is truncated: ends after %d bytes without its two zero blocks", off)
}
