package carton

import (
	"io"

	"github.com/carton-oci/carton-oci/internal/iox"
)

// What a [Source] outside this package is made of, so that there is one rule for
// content, ranges and symlinks.

// NewVerifier passes the bytes of a whole member through and returns io.EOF only
// if they had the hash and the size, which may be -1 where it is not known; else
// an error wrapping ErrChecksum. Close closes r.
func NewVerifier(r io.ReadCloser, path, hash string, size int64) io.ReadCloser {
	return verify(r, path, hash, size, 0)
}

// CheckCRC compares the CRC-32 (IEEE) of a member's content, which was read by
// ranges, with the one that the source has for it, if any. Another one is
// ErrChecksum.
func CheckCRC(src Source, path string, got uint32) error {
	if want, ok := src.CRC(path); ok && want != got {
		return errorf(ErrChecksum, path, "got CRC %08x, the zip says %08x", got, want)
	}
	return nil
}

// NewRange is what [Source] OpenRange returns for a member of size bytes: it
// opens what there is of the range through open, for which 0 < n, and ends with
// io.ErrUnexpectedEOF where the range reaches past the content.
func NewRange(
	path string, size, off, n int64, open func(off, n int64) (io.ReadCloser, error),
) (io.ReadCloser, error) {
	count, short, err := clip(path, size, off, n)
	if err != nil {
		return nil, err
	}
	if count == 0 {
		return ranged(nil, io.NopCloser(nil), 0, short), nil
	}
	r, err := open(off, count)
	if err != nil {
		return nil, err
	}
	return iox.ReadCloser{Reader: &iox.Exactly{R: r, N: count, Short: short, Judged: true}, Closer: r}, nil
}

// ResolveSymlinks checks the symlinks among members sorted by path, and gives
// each its cleaned Target and its final target's Size and Place. A symlink lies
// inside model/, is relative, and ends after at most [MaxSymlinks] steps at a
// regular member inside model/ that has the same Hash.
func ResolveSymlinks(members []Member) error { return resolveSymlinks(members) }

// QuotePath returns a path as an error shows it: as it is where it is printable,
// else quoted.
func QuotePath(path string) string { return quotePath(path) }
