package safetensors

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxString is the longest string, in bytes as written. Trainers put whole
// lists of captions into the metadata.
const maxString = 16 << 20

// lexer reads JSON (RFC 8259) piece by piece: encoding/json would hold the
// whole header, accept the last of two equal keys and replace what is not UTF-8.
type lexer struct {
	r    *bufio.Reader
	read int64 // bytes consumed
	buf  []byte
	err  error // what r failed with, other than its end
}

func newLexer(r io.Reader) *lexer { return &lexer{r: bufio.NewReaderSize(r, 32<<10)} }

func (l *lexer) next() (byte, error) {
	c, err := l.r.ReadByte()
	if err == nil {
		l.read++
	} else if !errors.Is(err, io.EOF) {
		l.err = err
	}
	return c, err
}

// peek returns the next byte that is not white space, without consuming it.
func (l *lexer) peek() (byte, error) {
	for {
		c, err := l.next()
		if err != nil {
			return 0, err
		}
		switch c {
		case ' ', '\t', '\n', '\r':
			continue
		}
		l.read--
		return c, l.r.UnreadByte()
	}
}

// want consumes the next byte that is not white space, which must be c.
func (l *lexer) want(c byte) error {
	got, err := l.peek()
	if err != nil {
		return err
	}
	if got != c {
		return fmt.Errorf("got %q at byte %d, want %q", rune(got), l.read, rune(c))
	}
	_, err = l.next()
	return err
}

// end wants nothing but white space.
func (l *lexer) end() error {
	c, err := l.peek()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("got %q at byte %d, want the end", rune(c), l.read)
	}
	return err
}

// str consumes a string.
func (l *lexer) str() (string, error) {
	if err := l.want('"'); err != nil {
		return "", err
	}
	l.buf = append(l.buf[:0], '"')
	escaped := false
	for {
		c, err := l.next()
		if err != nil {
			return "", err
		}
		if len(l.buf) >= maxString {
			return "", fmt.Errorf("a string is longer than %d bytes", maxString)
		}
		l.buf = append(l.buf, c)
		if c == '\\' {
			escaped = true
			if c, err = l.next(); err != nil {
				return "", err
			}
			l.buf = append(l.buf, c)
			continue
		}
		if c == '"' {
			break
		}
		if c < ' ' {
			return "", fmt.Errorf("a string holds the control character %#02x", c)
		}
	}
	if !utf8.Valid(l.buf) {
		return "", fmt.Errorf("a string before byte %d is not UTF-8", l.read)
	}
	if !escaped {
		return string(l.buf[1 : len(l.buf)-1]), nil
	}
	var s string
	if err := json.Unmarshal(l.buf, &s); err != nil || loneSurrogate(l.buf, s) {
		return "", fmt.Errorf("a string before byte %d has a wrong escape", l.read)
	}
	return s, nil
}

// loneSurrogate reports whether encoding/json replaced half of a surrogate pair,
// which could make two names one.
func loneSurrogate(raw []byte, s string) bool {
	const replacement = string(utf8.RuneError)
	written := strings.Count(strings.ToLower(string(raw)), `\ufffd`) + strings.Count(string(raw), replacement)
	return strings.Count(s, replacement) > written
}

// word consumes a number or a name such as true.
func (l *lexer) word() (string, error) {
	if _, err := l.peek(); err != nil {
		return "", err
	}
	l.buf = l.buf[:0]
	for {
		c, err := l.next()
		switch {
		case errors.Is(err, io.EOF) && len(l.buf) > 0:
			return string(l.buf), nil
		case err != nil:
			return "", err
		}
		if strings.IndexByte(",]}:\"[{ \t\r\n", c) >= 0 {
			l.read--
			return string(l.buf), l.r.UnreadByte()
		}
		if len(l.buf) >= 64 {
			return "", fmt.Errorf("a number at byte %d is too long", l.read)
		}
		l.buf = append(l.buf, c)
	}
}

// number consumes a whole number that is not negative.
func (l *lexer) number() (int64, error) {
	w, err := l.word()
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseInt(w, 10, 64)
	if err != nil || strconv.FormatInt(v, 10) != w || v < 0 {
		return 0, fmt.Errorf("got %s, want a whole number from 0 to 2⁶³-1", strconv.QuoteToGraphic(w))
	}
	return v, nil
}

// scalar consumes a number of any kind, true, false or null.
func (l *lexer) scalar() error {
	w, err := l.word()
	if err != nil {
		return err
	}
	if !json.Valid([]byte(w)) {
		return fmt.Errorf("got %s, want a JSON value", strconv.QuoteToGraphic(w))
	}
	return nil
}
