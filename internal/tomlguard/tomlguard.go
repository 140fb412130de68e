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
)

// ErrNesting means that a value lies deeper than allowed.
var ErrNesting = errors.New("nested too deeply")

// Check returns an error wrapping ErrNesting, with the line, where a value of b
// lies more than maxNesting levels deep. An array, an inline table, a dot in a
// key and a name in a table's header are a level each.
func Check(b []byte, maxNesting int) error {
	s := scanner{rest: b, max: maxNesting, line: 1, fresh: true}
	for len(s.rest) > 0 {
		if err := s.step(); err != nil {
			return err
		}
	}
	return nil
}

type scanner struct {
	rest  []byte
	max   int
	line  int
	fresh bool // nothing but white space stands in this line

	header bool  // inside a table header
	table  int   // levels of the table that the last header opened
	open   []int // levels that each open bracket added
	depth  int   // the sum of open
	dots   int   // levels of the key that is being read
}

// step consumes one byte, comment or string.
func (s *scanner) step() error {
	c := s.rest[0]
	fresh := s.fresh
	s.fresh = fresh && (c == ' ' || c == '\t' || c == '\n' || c == '\r')
	switch c {
	case '"', '\'':
		s.skipString(c)
		return nil
	case '#':
		end := bytes.IndexByte(s.rest, '\n')
		if end < 0 {
			end = len(s.rest)
		}
		s.rest = s.rest[end:]
		return nil
	case '\n':
		s.newline()
	case '[', '{':
		if c == '[' && fresh && len(s.open) == 0 {
			s.header, s.table = true, 0
		} else if err := s.push(); err != nil {
			return err
		}
	case ']', '}':
		s.pop()
	case ',', '=':
		if c == ',' {
			s.dots = 0
		}
	case '.':
		s.dots++
	}
	s.rest = s.rest[1:]
	if levels := s.table + s.depth + s.dots; levels > s.max {
		return fmt.Errorf("line %d: %w: more than %d levels", s.line, ErrNesting, s.max)
	}
	return nil
}

// newline ends a key or header, but no bracket of a value.
func (s *scanner) newline() {
	s.line++
	s.fresh = true
	if s.header {
		s.table, s.header = s.dots+1, false
	}
	s.dots = 0
}

// push opens a bracket below the key before it.
func (s *scanner) push() error {
	levels := 1
	if !s.header {
		levels += s.dots
		s.dots = 0
	}
	if len(s.open) >= s.max {
		return fmt.Errorf("line %d: %w: more than %d levels", s.line, ErrNesting, s.max)
	}
	s.open = append(s.open, levels)
	s.depth += levels
	return nil
}

func (s *scanner) pop() {
	if n := len(s.open); n > 0 {
		s.depth -= s.open[n-1]
		s.open = s.open[:n-1]
	}
	if !s.header {
		s.dots = 0
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
