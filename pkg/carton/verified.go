package carton

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"hash/crc32"
	"io"
)

// verified reads a member's content and returns io.EOF only if all of it had
// the hash, and the size and CRC-32 where they are known. It is the one place
// where content comes to be believed; without a hash it is not.
type verified struct {
	r    io.ReadCloser
	path string
	want string // lower-case hex sha256, "": somebody else looks
	size int64  // -1: not known
	crc  uint32 // 0: not known
	got  int64
	sum  hash.Hash
	sum3 uint32
	err  error // what every further Read returns
}

// verify wraps the reader of a whole member. hash may be "", size -1, crc 0.
func verify(r io.ReadCloser, path, hash string, size int64, crc uint32) io.ReadCloser {
	return &verified{r: r, path: path, want: hash, size: size, crc: crc, sum: sha256.New()}
}

func (v *verified) Read(b []byte) (int, error) {
	if v.err != nil {
		return 0, v.err
	}
	n, err := v.r.Read(b)
	if v.want != "" {
		v.sum.Write(b[:n])
	}
	if v.crc != 0 {
		v.sum3 = crc32.Update(v.sum3, crc32.IEEETable, b[:n])
	}
	v.got += int64(n)
	switch {
	case v.size >= 0 && v.got > v.size:
		v.err = errorf(ErrChecksum, v.path, "is longer than the %d bytes that it should have", v.size)
		return 0, v.err
	case err == io.EOF: // a wrapped io.EOF is an error
		v.err = v.end()
	case err != nil:
		v.err = of(v.path, err)
	}
	return n, v.err
}

// end judges the content once all of it was read.
func (v *verified) end() error {
	if v.size >= 0 && v.got != v.size {
		return errorf(ErrChecksum, v.path, "ends after %d bytes, want %d", v.got, v.size)
	}
	if got := hex.EncodeToString(v.sum.Sum(nil)); v.want != "" && got != v.want {
		return errorf(ErrChecksum, v.path, "got sha256 %s, want %s", got, v.want)
	}
	if v.crc != 0 && v.sum3 != v.crc {
		return errorf(ErrChecksum, v.path, "got CRC %08x, the zip says %08x", v.sum3, v.crc)
	}
	return io.EOF
}

func crcOf(b []byte) uint32 { return crc32.ChecksumIEEE(b) }

func (v *verified) Close() error { return v.r.Close() }
