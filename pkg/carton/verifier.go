package carton

import (
	"hash/crc32"
	"io"

	"github.com/carton-oci/carton-oci/internal/iox"
)

// NewVerifier passes the bytes of a whole member through and returns io.EOF only
// if they had the hash and the size, which may be -1 where it is not known; else
// an error wrapping ErrChecksum. Close closes r.
func NewVerifier(r io.ReadCloser, path, hash string, size int64) io.ReadCloser {
	return verify(r, path, hash, size, 0)
}

// verify is NewVerifier where a CRC-32 may be known too: not 0. hash may be "":
// somebody else looks.
func verify(r io.ReadCloser, path, hash string, size int64, crc uint32) io.ReadCloser {
	return &iox.Verifier{
		R: r, Size: size, SHA256: hash, CRC32: crc,
		Wrong:  func(text string) error { return errorf(ErrChecksum, path, "%s", text) },
		Broken: func(err error) error { return of(path, err) },
	}
}

// CheckCRC compares the CRC-32 (IEEE) of a member's content, which was read by
// ranges, with the one that the source has for it, if any. Another one is
// ErrChecksum.
func CheckCRC(src Source, path string, got uint32) error {
	if want, ok := src.CRC(path); ok && want != got {
		return errorf(ErrChecksum, path, "got CRC %08x, want %08x", got, want)
	}
	return nil
}

func crcOf(b []byte) uint32 { return crc32.ChecksumIEEE(b) }
