package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/carton-oci/carton-oci/internal/dtype"
)

// ReadHeader reads the header of a file, of version 1, 2 or 3, and nothing
// behind it: r then gives the elements. A file that breaks the format is
// ErrFormat, and io.ErrUnexpectedEOF where it ends inside the header; one of a
// type that is none of those here (objects, strings, records) is ErrType. An
// error of r itself is returned wrapped.
func ReadHeader(r io.Reader) (*Header, error) {
	var head [12]byte
	if err := fill(r, head[:8]); err != nil {
		return nil, err
	}
	if string(head[:6]) != magic {
		return nil, fmt.Errorf("%w: it begins with %q", ErrFormat, head[:6])
	}
	var n int64
	start := int64(10)
	switch head[6] {
	case 1:
		if err := fill(r, head[8:10]); err != nil {
			return nil, err
		}
		n = int64(binary.LittleEndian.Uint16(head[8:]))
	case 2, 3:
		if err := fill(r, head[8:12]); err != nil {
			return nil, err
		}
		n, start = int64(binary.LittleEndian.Uint32(head[8:])), 12
	default:
		return nil, fmt.Errorf("%w: the file is of version %d.%d, and 1 to 3 are known", ErrFormat, head[6], head[7])
	}
	if n > maxHeader {
		return nil, fmt.Errorf("%w: its header has %d bytes, more than the %d that are read", ErrFormat, n, maxHeader)
	}
	dict := make([]byte, n)
	if err := fill(r, dict); err != nil {
		return nil, err
	}
	h, err := parse(string(dict))
	if err != nil {
		return nil, err
	}
	h.DataStart = start + n
	return h, nil
}

// fill reads all of b.
func fill(r io.Reader, b []byte) error {
	_, err := io.ReadFull(r, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: the file ends inside the header: %w", ErrFormat, io.ErrUnexpectedEOF)
	}
	if err != nil {
		return fmt.Errorf("read header: %w", err)
	}
	return nil
}

// parse reads the dictionary: exactly the three keys, in any order.
func parse(dict string) (*Header, error) {
	p := &parser{rest: dict}
	h := &Header{}
	seen := map[string]bool{}
	p.want("{")
	for p.err == nil && !p.next("}") {
		key := p.text()
		p.want(":")
		if seen[key] {
			p.fail("%s occurs twice", key)
		}
		seen[key] = true
		switch key {
		case "descr":
			p.descr(h)
		case "fortran_order":
			h.Fortran = p.boolean()
		case "shape":
			h.Shape = p.shape()
		default:
			p.fail("it has the key %.40q", key)
		}
		if !p.next(",") {
			p.want("}")
			break
		}
	}
	if p.err == nil && strings.TrimLeft(p.rest, " \n\x00") != "" {
		p.fail("%.40q follows its end", p.rest)
	}
	if p.err == nil && len(seen) != 3 {
		p.fail("it lacks one of the keys descr, fortran_order and shape")
	}
	if p.err != nil {
		return nil, p.err
	}
	if _, ok := size(h.DType, h.Shape); !ok {
		return nil, fmt.Errorf("%w: its shape is too large for any file", ErrFormat)
	}
	return h, nil
}

// parser reads as much of Python as numpy writes. The first error stays.
type parser struct {
	rest string
	err  error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("%w: header: %s", ErrFormat, fmt.Sprintf(format, args...))
	}
}

// next consumes a token if it is what comes next.
func (p *parser) next(token string) bool {
	rest, ok := strings.CutPrefix(strings.TrimLeft(p.rest, " "), token)
	if ok {
		p.rest = rest
	}
	return ok
}

func (p *parser) want(token string) {
	if p.err == nil && !p.next(token) {
		p.fail("%.20q stands where %s belongs", p.rest, token)
	}
}

// text consumes a string without escapes.
func (p *parser) text() string {
	for _, q := range []string{"'", `"`} {
		if p.next(q) {
			text, rest, ok := strings.Cut(p.rest, q)
			if !ok || strings.Contains(text, `\`) {
				break
			}
			p.rest = rest
			return text
		}
	}
	p.fail("%.20q stands where a string belongs", p.rest)
	return ""
}

func (p *parser) boolean() bool {
	if p.next("True") {
		return true
	}
	p.want("False")
	return false
}

// descr consumes a type: a byte order and a code.
func (p *parser) descr(h *Header) {
	if p.next("[") {
		p.err = fmt.Errorf("a record %w", ErrType)
		return
	}
	text := p.text()
	if p.err != nil {
		return
	}
	if text != "" && strings.ContainsRune("<>|=", rune(text[0])) {
		t := dtype.Find(func(t *dtype.Type) bool { return t.Numpy != "" && t.Numpy == text[1:] })
		if t != nil && (t.Bytes() == 1 || text[0] == '<' || text[0] == '>') {
			h.DType, h.BigEndian = t.Name, text[0] == '>' && t.Bytes() > 1
			return
		}
	}
	p.err = fmt.Errorf("%.40q %w", text, ErrType)
}

// shape consumes a tuple of lengths.
func (p *parser) shape() []int64 {
	shape := []int64{}
	p.want("(")
	for p.err == nil && !p.next(")") {
		shape = append(shape, p.number())
		if len(shape) > MaxDims {
			p.fail("more than %d dimensions", MaxDims)
		}
		if p.next(",") {
			continue
		}
		if p.want(")"); len(shape) == 1 {
			p.fail("its shape is a number, and must be a tuple")
		}
		break
	}
	return shape
}

func (p *parser) number() int64 {
	p.rest = strings.TrimLeft(p.rest, " ")
	end := 0
	for end < len(p.rest) && p.rest[end] >= '0' && p.rest[end] <= '9' {
		end++
	}
	n, err := strconv.ParseInt(p.rest[:end], 10, 64)
	if err != nil {
		p.fail("%.20q stands where a length belongs", p.rest)
	}
	p.rest = strings.TrimPrefix(p.rest[end:], "L") // Python 2's
	return n
}
