package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
)

// parser reads a header forward.
type parser struct {
	source iox.Source
	in     *bufio.Reader
	at     int64 // bytes read
	size   int64 // of the file, -1 where it is not known
	kept   int64 // bytes of memory
	known  bool  // the file is GGUF
	word   [8]byte
}

// entryBytes is what a key or tensor takes beside its text and its shape.
const entryBytes = 128

func newParser(r io.Reader, size int64) *parser {
	p := &parser{source: iox.Source{R: r}, size: size}
	p.in = bufio.NewReaderSize(&p.source, 32<<10)
	return p
}

// take checks that n more bytes can be there, and counts them.
func (p *parser) take(n uint64) error {
	if p.size >= 0 && n > uint64(max(p.size-p.at, 0)) {
		return fmt.Errorf("it wants %d bytes at %d, and the file has %d: %w", n, p.at, p.size, io.ErrUnexpectedEOF)
	}
	if n > MaxHeaderBytes || p.at > MaxHeaderBytes-int64(n) {
		return errtext.Limit(ErrFormat, "its header is longer than %d bytes", MaxHeaderBytes)
	}
	p.at += int64(n)
	return nil
}

// keep counts what is kept.
func (p *parser) keep(bytes int) error {
	if p.kept += entryBytes + int64(bytes); p.kept > MaxKeptBytes {
		return errtext.Limit(ErrFormat, "names, values and shapes take more than %d bytes", MaxKeptBytes)
	}
	return nil
}

// number reads n bytes as a number.
func (p *parser) number(n int64) (uint64, error) {
	if err := p.take(uint64(n)); err != nil {
		return 0, err
	}
	clear(p.word[n:])
	if _, err := io.ReadFull(p.in, p.word[:n]); err != nil {
		return 0, iox.Unexpected(err)
	}
	return binary.LittleEndian.Uint64(p.word[:]), nil
}

// skip steps over n bytes.
func (p *parser) skip(n uint64) error {
	if err := p.take(n); err != nil {
		return err
	}
	_, err := p.in.Discard(int(n)) // at most MaxHeaderBytes
	return iox.Unexpected(err)
}

// text reads a string of at most MaxName bytes.
func (p *parser) text() (string, error) {
	n, err := p.number(8)
	if err != nil {
		return "", err
	}
	if n > MaxName {
		return "", fmt.Errorf("it has %d bytes, and may have %d", n, MaxName)
	}
	return p.chars(n)
}

// chars reads n bytes of text, which are few.
func (p *parser) chars(n uint64) (string, error) {
	if err := p.take(n); err != nil {
		return "", err
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(p.in, b); err != nil {
		return "", iox.Unexpected(err)
	}
	return string(b), nil
}

// name reads the name of a key or tensor.
func (p *parser) name() (string, error) {
	name, err := p.text()
	switch {
	case err != nil:
		return "", fmt.Errorf("its name: %w", err)
	case name == "":
		return "", errors.New("its name is empty")
	case !utf8.ValidString(name):
		return "", fmt.Errorf("its name %s is not UTF-8", quote(name))
	}
	return name, nil
}

// header reads all that stands before the data.
func (p *parser) header() (*Header, error) {
	h := &Header{Align: DefaultAlign}
	if err := p.begin(h); err != nil {
		return nil, err
	}
	tensors, err := p.number(8)
	if err != nil {
		return nil, fmt.Errorf("number of tensors: %w", err)
	}
	keys, err := p.number(8)
	if err != nil {
		return nil, fmt.Errorf("number of keys: %w", err)
	}
	// A key has 13 bytes at least, a tensor 25.
	if left := uint64(max(p.size-p.at, 0)); p.size >= 0 && (keys > left/13 || tensors > left/25) {
		return nil, fmt.Errorf("it says that it holds %d keys and %d tensors, in a file of %d bytes: %w", keys, tensors,
			p.size, io.ErrUnexpectedEOF)
	}
	if keys > MaxKeys || tensors > MaxTensors {
		return nil, errtext.Limit(ErrFormat, "it says that it holds %d keys and %d tensors, and at most %d and %d "+
			"are read", keys, tensors, MaxKeys, MaxTensors)
	}
	for i := range keys {
		k, err := p.key()
		if err != nil {
			return nil, fmt.Errorf("key %d of %d: %w", i+1, keys, err)
		}
		h.Keys = append(h.Keys, k)
	}
	if err := h.setAlign(); err != nil {
		return nil, err
	}
	for i := range tensors {
		t, err := p.tensor(h.Align)
		if err != nil {
			return nil, fmt.Errorf("tensor %d of %d: %w", i+1, tensors, err)
		}
		h.Tensors = append(h.Tensors, t)
	}
	h.DataStart = align(p.at, h.Align)
	return h, nil
}

// begin reads what says that it is GGUF, and which.
func (p *parser) begin(h *Header) error {
	head := make([]byte, 4)
	if n, err := io.ReadFull(p.in, head); err != nil {
		return fmt.Errorf("%w: it ends after %d bytes: %w", ErrFormat, n, iox.Unexpected(err))
	}
	p.at = 4
	if err := modelfile.CheckPointer(head, p.in); err != nil {
		return err
	}
	switch magic := string(head); magic {
	case "GGUF":
	case "lmgg", "fmgg", "tjgg": // numbers that read as text in the other byte order
		return fmt.Errorf("%w: it is a file of the formats before GGUF (%s), which llama.cpp has not read since 2023",
			ErrVersion, reversed(magic))
	default:
		return fmt.Errorf("%w: it begins with %s, want GGUF", ErrFormat, quote(magic))
	}
	p.known = true
	version, err := p.number(4)
	if err != nil {
		return fmt.Errorf("version: %w", err)
	}
	h.Version = uint32(version)
	if version == 2 || version == 3 {
		return nil
	}
	p.known = false // which form it is nobody says here
	switch {
	case version == 1:
		return fmt.Errorf("%w: it is of version 1, which llama.cpp does not read either", ErrVersion)
	case version != 0 && version&0xffff == 0:
		return fmt.Errorf("%w: it is big-endian", ErrVersion)
	case version == 0:
		return fmt.Errorf("%w: it is of version 0, which there is none of", ErrFormat)
	}
	return fmt.Errorf("%w: it is of version %d, and 2 and 3 are read", ErrVersion, version)
}

func reversed(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// key reads a key and its value.
func (p *parser) key() (k Key, err error) {
	k.Begin = p.at
	if k.Name, err = p.name(); err != nil {
		return k, err
	}
	if err := p.keep(len(k.Name)); err != nil {
		return k, err
	}
	n, err := p.number(4)
	if err == nil {
		k.Type = ValueType(n)
		begin := p.at
		k.Value, err = p.value(k.Type)
		if k.Bytes = p.at - begin; k.Type == String {
			k.Bytes -= 8
		}
	}
	if err != nil {
		return k, fmt.Errorf("%s: %w", quote(k.Name), err)
	}
	k.End = p.at
	return k, nil
}

// value reads a value, and keeps it where it is short.
func (p *parser) value(t ValueType) (any, error) {
	switch t {
	case Array:
		return nil, p.skipArray(1)
	case String:
		n, err := p.number(8)
		switch {
		case err != nil:
			return nil, err
		case n > MaxValue:
			return nil, p.skip(n)
		}
		text, err := p.chars(n)
		if err != nil {
			return nil, err
		}
		return text, p.keep(len(text))
	}
	size, known := valueBytes[t]
	if !known {
		return nil, fmt.Errorf("its value has the type %d, which there is none of", t)
	}
	n, err := p.number(size)
	if err != nil {
		return nil, err
	}
	shift := 64 - 8*size
	switch t {
	case Int8, Int16, Int32, Int64:
		return int64(n<<shift) >> shift, nil
	case Float32:
		return float64(math.Float32frombits(uint32(n))), nil
	case Float64:
		return math.Float64frombits(n), nil
	case Bool:
		if n > 1 {
			return nil, fmt.Errorf("it is a bool, and has the value %d", n)
		}
		return n == 1, nil
	}
	return n, nil
}

// skipArray steps over an array, depth deep.
func (p *parser) skipArray(depth int) error {
	if depth > MaxDepth {
		return fmt.Errorf("its arrays nest more than %d deep", MaxDepth)
	}
	kind, err := p.number(4)
	if err != nil {
		return err
	}
	count, err := p.number(8)
	if err != nil {
		return err
	}
	t := ValueType(kind)
	size, fixed := valueBytes[t]
	switch {
	case fixed && count > MaxHeaderBytes:
		return p.take(count) // says what that is over
	case fixed:
		return p.skip(count * uint64(size))
	case t != String && t != Array:
		return fmt.Errorf("it is an array of the type %d, which there is none of", kind)
	case count > MaxHeaderBytes: // each has 8 bytes at least
		return p.take(count)
	}
	for range count {
		if t == Array {
			err = p.skipArray(depth + 1)
		} else {
			err = p.skipText()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) skipText() error {
	n, err := p.number(8)
	if err != nil {
		return err
	}
	return p.skip(n)
}
