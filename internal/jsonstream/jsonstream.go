// Package jsonstream reads JSON (RFC 8259) piece by piece, and strictly.
//
// encoding/json would hold a whole document, take the last of two equal keys
// and replace what is not UTF-8. A document from a stranger may be long, and
// must not be two documents to two readers: here a caller asks for what it
// wants next, skips the rest without keeping it, and anything else is an error.
// [Marshal] is how JSON of ours is written.
package jsonstream

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxString is the longest string, in bytes as written. Trainers put whole
// lists of captions into metadata.
const MaxString = 16 << 20

// Reader reads one document. Its errors say where in the document; those of the
// source are also kept for [Reader.SourceError].
type Reader struct {
	// Python allows NaN, Infinity and -Infinity where a value is skipped, as
	// Python's json module writes them.
	Python bool
	// Longest is the longest string, in bytes as written; 0 is [MaxString].
	Longest int

	r    *bufio.Reader
	read int64 // bytes consumed
	buf  []byte
	keys int   // what the keys take that are compared
	err  error // what r failed with, other than its end
}

// New returns a Reader of r, which may be read some bytes further than the
// document.
func New(r io.Reader) *Reader { return &Reader{r: bufio.NewReaderSize(r, 32<<10)} }

// Offset returns how many bytes were consumed.
func (r *Reader) Offset() int64 { return r.read }

// SourceError returns the error, other than its end, that the source failed
// with; nil where the document itself is wrong.
func (r *Reader) SourceError() error { return r.err }

func (r *Reader) next() (byte, error) {
	c, err := r.r.ReadByte()
	if err == nil {
		r.read++
	} else if !errors.Is(err, io.EOF) {
		r.err = err
	}
	return c, err
}

// Peek returns the next byte that is not white space, without consuming it.
func (r *Reader) Peek() (byte, error) {
	for {
		c, err := r.next()
		if err != nil {
			return 0, err
		}
		switch c {
		case ' ', '\t', '\n', '\r':
			continue
		}
		r.read--
		return c, r.r.UnreadByte()
	}
}

// want consumes the next byte that is not white space, which must be c.
func (r *Reader) want(c byte) error {
	got, err := r.Peek()
	if err != nil {
		return err
	}
	if got != c {
		return fmt.Errorf("got %q at byte %d, want %q", rune(got), r.read, rune(c))
	}
	_, err = r.next()
	return err
}

// End wants nothing but white space up to the end of the source.
func (r *Reader) End() error {
	c, err := r.Peek()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("got %q at byte %d, want the end", rune(c), r.read)
	}
	return err
}

// String consumes a string.
func (r *Reader) String() (string, error) {
	escaped, err := r.quoted()
	if err != nil {
		return "", err
	}
	if !escaped {
		return string(r.buf[1 : len(r.buf)-1]), nil
	}
	var s string
	if err := json.Unmarshal(r.buf, &s); err != nil || loneSurrogate(r.buf) {
		return "", fmt.Errorf("a string before byte %d has a wrong escape", r.read)
	}
	return s, nil
}

// skipString consumes a string without making one of it.
func (r *Reader) skipString() error {
	escaped, err := r.quoted()
	if err == nil && escaped && !json.Valid(r.buf) {
		err = fmt.Errorf("a string before byte %d has a wrong escape", r.read)
	}
	return err
}

// quoted consumes a string as written, quotes included, into buf, and reports
// whether it holds an escape.
func (r *Reader) quoted() (escaped bool, err error) {
	if err := r.want('"'); err != nil {
		return false, err
	}
	r.buf = append(r.buf[:0], '"')
	for {
		r.plain()
		c, err := r.next()
		if err != nil {
			return false, err
		}
		if len(r.buf) >= r.longest() {
			return false, fmt.Errorf("a string is longer than %d bytes", r.longest())
		}
		r.buf = append(r.buf, c)
		switch {
		case c == '\\':
			escaped = true
			if c, err = r.next(); err != nil {
				return false, err
			}
			r.buf = append(r.buf, c)
		case c == '"':
			if !utf8.Valid(r.buf) {
				return false, fmt.Errorf("a string before byte %d is not UTF-8", r.read)
			}
			return escaped, nil
		case c < ' ':
			return false, fmt.Errorf("a string holds the control character %#02x", c)
		}
	}
}

func (r *Reader) longest() int { return cmp.Or(r.Longest, MaxString) }

// plain consumes what is in memory of a string up to the next byte with a
// meaning, into buf. Most of a long document is in strings.
func (r *Reader) plain() {
	b, _ := r.r.Peek(r.r.Buffered()) // no more than there is
	n := 0
	for n < len(b) && b[n] >= ' ' && b[n] != '"' && b[n] != '\\' {
		n++
	}
	n = min(n, max(0, r.longest()-len(r.buf)))
	r.buf = append(r.buf, b[:n]...)
	_, _ = r.r.Discard(n) // it is there
	r.read += int64(n)
}

// loneSurrogate reports whether a string, whose escapes are well-formed, holds
// half of a surrogate pair. encoding/json replaces it, which could make two names
// one.
func loneSurrogate(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if i++; raw[i] != 'u' {
			continue
		}
		r := unit(raw[i+1:])
		i += 4
		if !utf16.IsSurrogate(r) {
			continue
		}
		rest := raw[i+1:]
		if len(rest) < 6 || rest[0] != '\\' || rest[1] != 'u' ||
			utf16.DecodeRune(r, unit(rest[2:])) == unicode.ReplacementChar {
			return true
		}
		i += 6
	}
	return false
}

// unit returns the value of four hexadecimal digits.
func unit(b []byte) rune {
	v, _ := strconv.ParseUint(string(b[:4]), 16, 16) // they are there
	return rune(v)
}

// word consumes a number or a name such as true.
func (r *Reader) word() (string, error) {
	if _, err := r.Peek(); err != nil {
		return "", err
	}
	r.buf = r.buf[:0]
	for {
		c, err := r.next()
		switch {
		case errors.Is(err, io.EOF) && len(r.buf) > 0:
			return string(r.buf), nil
		case err != nil:
			return "", err
		}
		if strings.IndexByte(",]}:\"[{ \t\r\n", c) >= 0 {
			r.read--
			return string(r.buf), r.r.UnreadByte()
		}
		if len(r.buf) >= 64 {
			return "", fmt.Errorf("a number at byte %d is too long", r.read)
		}
		r.buf = append(r.buf, c)
	}
}

// Natural consumes a whole number that is not negative.
func (r *Reader) Natural() (int64, error) {
	w, err := r.word()
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseInt(w, 10, 64)
	if err != nil || strconv.FormatInt(v, 10) != w || v < 0 {
		return 0, fmt.Errorf("got %s, want a whole number from 0 to 2⁶³-1", strconv.QuoteToGraphic(w))
	}
	return v, nil
}

// Number consumes a number of any kind and returns it as it is written.
func (r *Reader) Number() (string, error) {
	w, err := r.word()
	if err != nil {
		return "", err
	}
	if !json.Valid([]byte(w)) || strings.IndexByte("-0123456789", w[0]) < 0 {
		return "", fmt.Errorf("got %s, want a number", strconv.QuoteToGraphic(w))
	}
	return w, nil
}

// Bool consumes true or false.
func (r *Reader) Bool() (bool, error) {
	w, err := r.word()
	if err == nil && w != "true" && w != "false" {
		err = fmt.Errorf("got %s, want true or false", strconv.QuoteToGraphic(w))
	}
	return w == "true", err
}

// Null consumes null, where that is what comes next.
func (r *Reader) Null() (bool, error) {
	if c, err := r.Peek(); err != nil || c != 'n' {
		return false, err
	}
	w, err := r.word()
	if err == nil && w != "null" {
		err = fmt.Errorf("got %s, want a JSON value", strconv.QuoteToGraphic(w))
	}
	return true, err
}

// scalar consumes a number of any kind, true, false or null.
func (r *Reader) scalar() error {
	w, err := r.word()
	if err != nil {
		return err
	}
	if r.Python && (w == "NaN" || w == "Infinity" || w == "-Infinity") {
		return nil
	}
	if !json.Valid([]byte(w)) {
		return fmt.Errorf("got %s, want a JSON value", strconv.QuoteToGraphic(w))
	}
	return nil
}
