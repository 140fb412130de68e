package iox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
)

// Verifier passes the bytes of R through and returns io.EOF only if all of them
// together were what they should be. It gives out none beyond Size.
type Verifier struct {
	R      io.ReadCloser
	Size   int64  // in bytes; -1: not known
	SHA256 string // lower-case hex; "": not looked at
	CRC32  uint32 // IEEE; 0: not known
	// Withhold keeps the last bytes back until all was right, from who reads no
	// further than the last byte wanted. It needs Size.
	Withhold bool
	// Wrong makes the error of a text that says what the content is instead.
	Wrong func(text string) error
	// Broken makes the error of one that R ends with; nil leaves it as it is.
	Broken func(err error) error

	// Err is what every further Read returns; set it where nothing may be read.
	Err error

	n   int64
	sum hash.Hash
	crc uint32
}

// Close closes R.
func (v *Verifier) Close() error { return v.R.Close() }

// Read implements io.Reader.
func (v *Verifier) Read(b []byte) (int, error) {
	n, err := v.read(b)
	for err == nil && v.Withhold && v.n == v.Size {
		if _, err = v.read(make([]byte, 1)); err == io.EOF { //nolint:errorlint // a wrapped one is a fault of R
			return n, nil
		}
	}
	if v.Withhold && err != nil && err != io.EOF { //nolint:errorlint // the same
		n = 0
	}
	return n, err
}

func (v *Verifier) read(b []byte) (int, error) {
	if v.Err != nil || len(b) == 0 {
		return 0, v.Err
	}
	left := v.Size - v.n
	if v.Size >= 0 && int64(len(b)) > left+1 { // one more shows that it is too long
		b = b[:left+1]
	}
	n, err := v.R.Read(b)
	if v.Size >= 0 && int64(n) > left {
		n = int(left)
		v.Err = v.wrongf("is longer than the %d bytes that it should have", v.Size)
		return n, v.Err
	}
	v.count(b[:n])
	switch v.Err = err; {
	case err == io.EOF: // a wrapped one is a fault of R
		v.Err = v.judge()
	case err != nil && v.Broken != nil:
		v.Err = v.Broken(err)
	}
	return n, v.Err
}

func (v *Verifier) count(b []byte) {
	v.n += int64(len(b))
	if v.SHA256 != "" {
		if v.sum == nil {
			v.sum = sha256.New()
		}
		v.sum.Write(b)
	}
	if v.CRC32 != 0 {
		v.crc = crc32.Update(v.crc, crc32.IEEETable, b)
	}
}

// judge returns io.EOF where all was right.
func (v *Verifier) judge() error {
	v.count(nil) // of an empty content, too
	if v.Size >= 0 && v.n != v.Size {
		return v.wrongf("ends after %d bytes, want %d", v.n, v.Size)
	}
	if v.SHA256 != "" {
		if got := hex.EncodeToString(v.sum.Sum(nil)); got != v.SHA256 {
			return v.wrongf("got sha256 %s, want %s", got, v.SHA256)
		}
	}
	if v.crc != v.CRC32 {
		return v.wrongf("got CRC %08x, want %08x", v.crc, v.CRC32)
	}
	return io.EOF
}

func (v *Verifier) wrongf(format string, args ...any) error {
	return v.Wrong(fmt.Sprintf(format, args...))
}
