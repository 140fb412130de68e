package iox_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/carton-oci/carton-oci/internal/iox"
)

// A Verifier ends with io.EOF only where all was right, and gives out nothing beyond
// the size.
func TestVerifier(t *testing.T) {
	const sum, crc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", 0x352441c2 // of "abc"
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	abc := func() io.Reader { return strings.NewReader("abc") }
	for name, c := range map[string]struct {
		r    io.Reader
		v    iox.Verifier
		want string
		text string // of the error, "" for io.EOF
	}{
		"right":               {abc(), iox.Verifier{Size: 3, SHA256: sum, CRC32: crc}, "abc", ""},
		"nothing known":       {abc(), iox.Verifier{Size: -1}, "abc", ""},
		"an end with data":    {iotest.DataErrReader(abc()), iox.Verifier{Size: 3, SHA256: sum}, "abc", ""},
		"empty":               {strings.NewReader(""), iox.Verifier{SHA256: empty}, "", ""},
		"empty, and not so":   {strings.NewReader(""), iox.Verifier{SHA256: sum}, "", "got sha256 " + empty},
		"too short":           {abc(), iox.Verifier{Size: 4, SHA256: sum}, "abc", "ends after 3 bytes, want 4"},
		"too long":            {abc(), iox.Verifier{Size: 2, SHA256: sum}, "ab", "is longer than the 2 bytes"},
		"another hash":        {abc(), iox.Verifier{Size: 3, SHA256: empty}, "abc", "got sha256 " + sum},
		"another CRC":         {abc(), iox.Verifier{Size: 3, CRC32: 1}, "abc", "got CRC 352441c2, want 00000001"},
		"broken":              {io.MultiReader(abc(), iotest.ErrReader(errBroken)), iox.Verifier{Size: 4, SHA256: sum}, "abc", "marked: broken"},
		"a wrapped end":       {iotest.ErrReader(fmt.Errorf("late: %w", io.EOF)), iox.Verifier{SHA256: empty}, "", "marked: late"},
		"nothing may be read": {abc(), iox.Verifier{Size: 3, Err: errBroken}, "", "broken"},
	} {
		for _, size := range []int{1, 2, 64} {
			v := c.v
			v.R = io.NopCloser(c.r)
			if s, ok := c.r.(*strings.Reader); ok {
				_, _ = s.Seek(0, io.SeekStart)
			} else if size > 1 {
				continue // it is used up
			}
			v.Wrong = errors.New
			v.Broken = func(err error) error { return fmt.Errorf("marked: %w", err) }
			var got []byte
			var err error
			for err == nil {
				b := make([]byte, size)
				var n int
				n, err = v.Read(b)
				got = append(got, b[:n]...)
			}
			if c.text == "" && err != io.EOF || !strings.HasPrefix(err.Error(), c.text) || string(got) != c.want { //nolint:errorlint // the end is bare
				t.Errorf("%s, by %d: got %q, %v, want %q, %s", name, size, got, err, c.want, c.text)
			}
			if _, again := v.Read(make([]byte, 1)); again != err { //nolint:errorlint // the same error
				t.Errorf("%s: got %v, then %v", name, err, again)
			}
		}
	}
}

// What a Verifier withholds never comes where the content is wrong.
func TestVerifierWithholds(t *testing.T) {
	const sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // of "abc"
	for text, want := range map[string]string{"abc": "abc", "abd": "ab", "abcd": "ab", "ab": "ab", "": ""} {
		v := iox.Verifier{
			R: io.NopCloser(strings.NewReader(text)), Size: 3, SHA256: sum, Withhold: true,
			Wrong: func(string) error { return errBroken },
		}
		got, err := io.ReadAll(iotest.OneByteReader(&v))
		if string(got) != want || (err == nil) != (text == "abc") {
			t.Errorf("%q: got %q, %v, want %q", text, got, err, want)
		}
	}
}
