// Package tomlguard bounds what a TOML document can make its parser do.
//
// Parsers descend into arrays, inline tables and dotted keys, and keep a name
// for every level: a document of a few kB that nests ten thousand deep costs a
// deep stack, and one long dotted key quadratic time. [Check] walks over the
// bytes once, with no memory to speak of, before a parser sees them. It judges
// nothing else: what is no TOML is the parser's to say.
//
// Specification: https://toml.io/en/v1.0.0
package tomlguard

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrNesting: a value lies deeper than allowed.
	ErrNesting = errors.New("nested too deeply")
	// ErrItems: a document holds more keys, values and tables than allowed.
	ErrItems = errors.New("too many keys, values and tables")
)

// Check returns an error wrapping ErrNesting or ErrItems, with the line, where a
// value of b lies more than maxNesting levels deep, or b holds more than maxItems of
// what costs a parser memory.
//
// An array, an inline table, a dot in a key and a name in a table's header are a
// level each. Items are keys, the names that a dotted key or header is made of,
// brackets and commas: three bytes of TOML can cost a parser a kilobyte. As parsers
// keep the whole path of every name, an item counts once more for every four levels
// that it lies deep, and for every 512 bytes of names that lead to it.
func Check(b []byte, maxNesting, maxItems int) error {
	s := scanner{rest: b, line: 1, fresh: true, inKey: true}
	for len(s.rest) > 0 {
		if s.step(); s.items > maxItems {
			return fmt.Errorf("line %d: %w: more than %d", s.line, ErrItems, maxItems)
		}
		if s.path().levels > maxNesting {
			return fmt.Errorf("line %d: %w: more than %d levels", s.line, ErrNesting, maxNesting)
		}
	}
	return nil
}

// path is a piece of what leads to a value: levels, and the bytes of their names.
type path struct{ levels, names int }

type scanner struct {
	rest  []byte
	line  int
	items int
	fresh bool // nothing but white space stands in this line

	header bool   // inside a table header
	table  path   // of the table that the last header opened
	open   []path // that each open bracket added
	around path   // the sum of open
	key    path   // of the key that is being read
	inKey  bool   // and not its value
}

// path is what leads to where the scanner is.
func (s *scanner) path() path {
	return path{s.table.levels + s.around.levels + s.key.levels, s.table.names + s.around.names + s.key.names}
}

// step consumes one byte, comment or string.
func (s *scanner) step() {
	c, left := s.rest[0], len(s.rest)
	if strings.IndexByte("=.,[{", c) >= 0 {
		at := s.path()
		s.items += 1 + at.levels/4 + at.names/512
	}
	fresh := s.fresh
	s.fresh = fresh && strings.IndexByte(" \t\n\r", c) >= 0
	switch c {
	case '"', '\'':
		s.skipString(c)
	case '#':
		end := bytes.IndexByte(s.rest, '\n')
		if end < 0 {
			end = left
		}
		s.rest = s.rest[end:]
	default:
		s.rest = s.rest[1:]
	}
	switch {
	case c == '\n':
		s.newline()
	case c == ',':
		s.key, s.inKey = path{}, true
	case c == '=':
		s.inKey = false
	case (c == '[' || c == '{') && !s.header && (c == '{' || !fresh || len(s.open) > 0):
		s.push(path{1 + s.key.levels, s.key.names})
		s.key, s.inKey = path{}, true
	case (c == ']' || c == '}') && !s.header:
		s.pop()
		s.key, s.inKey = path{}, false
	default:
		s.name(c, left-len(s.rest))
	}
}

// name consumes n bytes of a key, beginning with c, or of a header with its brackets.
func (s *scanner) name(c byte, n int) {
	switch {
	case c == '.':
		s.key.levels++
	case c == '[' && !s.header:
		s.header, s.table.levels = true, 0
	case c == '[' || c == '{':
		s.push(path{levels: 1})
	case c == ']' || c == '}':
		s.pop()
	}
	if s.inKey {
		s.key.names += n
	}
}

// newline ends a key or header, but no bracket of a value.
func (s *scanner) newline() {
	s.line++
	s.fresh = true
	if s.header {
		s.table, s.header = path{s.key.levels + 1, s.key.names}, false
	}
	s.key, s.inKey = path{}, true
}

// push opens a bracket below the key before it.
func (s *scanner) push(p path) {
	s.open = append(s.open, p)
	s.around.levels += p.levels
	s.around.names += p.names
}

func (s *scanner) pop() {
	if n := len(s.open); n > 0 {
		s.around.levels -= s.open[n-1].levels
		s.around.names -= s.open[n-1].names
		s.open = s.open[:n-1]
	}
}

// skipString consumes a string of either quote, of one or of many lines. One
// line's string that is not closed ends with its line, where parsers stop.
func (s *scanner) skipString(quote byte) {
	triple := bytes.Repeat([]byte{quote}, 3)
	if bytes.HasPrefix(s.rest, triple) {
		s.rest = s.rest[3:]
		for len(s.rest) > 0 && !bytes.HasPrefix(s.rest, triple) {
			s.skipByte(quote)
		}
		// Up to two quotes may stand before the closing three.
		for i := 0; i < 5 && len(s.rest) > 0 && s.rest[0] == quote; i++ {
			s.rest = s.rest[1:]
		}
		return
	}
	s.rest = s.rest[1:]
	for len(s.rest) > 0 && s.rest[0] != '\n' {
		if s.rest[0] == quote {
			s.rest = s.rest[1:]
			return
		}
		s.skipByte(quote)
	}
}

// skipByte consumes one byte of a string, or an escape.
func (s *scanner) skipByte(quote byte) {
	n := 1
	if quote == '"' && s.rest[0] == '\\' && len(s.rest) > 1 && s.rest[1] != '\n' {
		n = 2
	}
	if s.rest[0] == '\n' {
		s.line++
	}
	s.rest = s.rest[n:]
}
