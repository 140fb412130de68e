package layout

import (
	"archive/tar"
	"bytes"
	"math"
	"strconv"
	"strings"
)

// Where the fields of a header block lie.
// https://pubs.opengroup.org/onlinepubs/9799919799/utilities/pax.html
// https://www.gnu.org/software/tar/manual/html_node/Standard.html
const (
	offName, lenName     = 0, 100
	offMode, lenMode     = 100, 8
	offSize, lenSize     = 124, 12
	offSum, lenSum       = 148, 8
	offType              = 156
	offLink, lenLink     = 157, 100
	offMagic, lenMagic   = 257, 8
	offPrefix, lenPrefix = 345, 155
	offATime, offCTime   = 345, 357 // GNU's
	lenTime              = 12
)

const (
	magicUSTAR = "ustar\x0000"
	magicGNU   = "ustar  \x00"

	modeSetID = 0o6000 // setuid and setgid
)

// rawHeader is what one header block says.
type rawHeader struct {
	name, link string
	size       int64
	sizeIsMax  bool // the octal field is full: "larger than I can say"
	mode       int64
	kind       byte
}

// parseRawHeader reads a header block: V7, ustar, PAX's ustar or GNU.
func parseRawHeader(b *[blockSize]byte) (*rawHeader, error) {
	name := cString(b[offName:][:lenName])
	if !sumIsRight(b) {
		return nil, errorf(ErrFormat, name, "tar header has a wrong checksum")
	}
	h := &rawHeader{name: name, link: cString(b[offLink:][:lenLink]), kind: b[offType]}
	switch string(b[offMagic:][:lenMagic]) {
	case magicUSTAR:
		if !isZero(b[offPrefix+lenPrefix:]) {
			return nil, errorf(ErrFormat, name, "tar header is neither ustar nor GNU: it has data behind the prefix")
		}
		if prefix := cString(b[offPrefix:][:lenPrefix]); prefix != "" {
			h.name = prefix + "/" + name
		}
	case magicGNU:
		// Some readers take what is no time here for a ustar prefix.
		_, atime := tarNumber(b[offATime:][:lenTime])
		_, ctime := tarNumber(b[offCTime:][:lenTime])
		if !atime || !ctime {
			return nil, errorf(ErrFormat, name,
				"tar header is neither ustar nor GNU: it has no times behind GNU's magic")
		}
	case strings.Repeat("\x00", lenMagic):
	default:
		return nil, errorf(ErrFormat, name, "its tar header has the magic %q, which is neither ustar's nor GNU's",
			b[offMagic:][:lenMagic])
	}
	var ok bool
	if h.size, ok = tarNumber(b[offSize:][:lenSize]); !ok {
		return nil, errorf(ErrFormat, name, "its tar header states the size %q, which can't be one",
			b[offSize:][:lenSize])
	}
	h.sizeIsMax = h.size == 1<<33-1
	if h.mode, ok = tarNumber(b[offMode:][:lenMode]); !ok {
		return nil, errorf(ErrFormat, name, "its tar header states the mode %q, which can't be one",
			b[offMode:][:lenMode])
	}
	return h, nil
}

// check refuses what a layer may not hold.
func (h *rawHeader) check() error {
	switch h.kind {
	case tar.TypeReg, '\x00', tar.TypeDir, tar.TypeSymlink:
	case tar.TypeLink:
		return errorf(ErrFormat, h.name, "is a hard link; a layer holds only files, folders and symlinks")
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		return errorf(ErrFormat, h.name, "is a device or FIFO; a layer holds only files, folders and symlinks")
	case tar.TypeGNUSparse:
		return errorf(ErrFormat, h.name, "is a sparse file; a layer holds only files, folders and symlinks")
	default:
		return errorf(ErrFormat, h.name, "has the tar type %q; a layer holds only files, folders and symlinks", h.kind)
	}
	if h.kind != tar.TypeDir && h.kind != tar.TypeSymlink && h.mode&modeSetID != 0 {
		return errorf(ErrFormat, h.name, "is setuid or setgid (mode %04o)", h.mode)
	}
	return nil
}

// sumIsRight checks the checksum: the sum of the block's bytes with the field
// itself as spaces. Some old writers summed signed bytes.
func sumIsRight(b *[blockSize]byte) bool {
	want, ok := tarNumber(b[offSum:][:lenSum])
	if !ok {
		return false
	}
	var unsigned, signed int64
	for i, c := range b {
		if i >= offSum && i < offSum+lenSum {
			c = ' '
		}
		unsigned += int64(c)
		signed += int64(int8(c)) //nolint:gosec // the reinterpretation is meant
	}
	return want == unsigned || want == signed
}

// tarNumber reads a number field: octal digits between spaces and NULs, or
// GNU's base 256 where the first bit is set. Negative ones are not ok.
func tarNumber(field []byte) (int64, bool) {
	if field[0]&0x80 != 0 {
		return base256(field)
	}
	s := strings.Trim(string(field), " \x00")
	if s == "" {
		return 0, true
	}
	n, err := strconv.ParseUint(s, 8, 63)
	return int64(n), err == nil //nolint:gosec // 63 bits fit
}

func base256(field []byte) (int64, bool) {
	if field[0] != 0x80 { // negative, or over 2^56 times the field's rest
		return 0, false
	}
	var n int64
	for _, c := range field[1:] {
		if n > math.MaxInt64>>8 {
			return 0, false
		}
		n = n<<8 | int64(c)
	}
	return n, true
}

// cString returns what stands before the first NUL.
func cString(b []byte) string {
	s, _, _ := bytes.Cut(b, []byte{0})
	return string(s)
}

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
