package tomlguard

import (
	"errors"
	"fmt"
	"math"
)

// ErrItems: a document holds more keys, values and tables than allowed.
var ErrItems = errors.New("too many keys, values and tables")

// CheckItems returns an error wrapping ErrItems, with the line, where b holds
// more than maxItems of what costs a parser memory: keys, the names that a
// dotted key or header is made of, brackets and commas. Three bytes of TOML can
// cost a parser a kilobyte.
//
// As parsers keep the whole path of every name, an item counts once more for
// every four levels that it lies deep, and for every 512 bytes of names that
// lead to it.
func CheckItems(b []byte, maxItems int) error {
	s := scanner{rest: b, max: math.MaxInt, line: 1, fresh: true}
	names := names{inKey: true}
	for items := 0; len(s.rest) > 0; {
		c, left := s.rest[0], len(s.rest) // c is never inside a string or comment
		switch c {
		case '=', '.', ',', '[', '{':
			items += 1 + (s.table+s.depth+s.dots)/4 + (names.header+names.around+names.key)/512
		}
		if items > maxItems {
			return fmt.Errorf("line %d: %w: more than %d", s.line, ErrItems, maxItems)
		}
		wasHeader := s.header
		if err := s.step(); err != nil {
			return err
		}
		names.step(c, left-len(s.rest), wasHeader || s.header)
	}
	return nil
}

// names counts the bytes of the names that lead to where a scanner is.
type names struct {
	header int   // of the table that the last header opened
	open   []int // of the key before each open bracket
	around int   // the sum of open
	key    int   // of the key that is being read
	inKey  bool  // and not its value
}

// step is told of n bytes that begin with c and were scanned as one; header says
// whether they belong to a table's header.
func (k *names) step(c byte, n int, header bool) {
	switch {
	case c == '\n' && header:
		k.header, k.key, k.inKey = k.key, 0, true
	case c == '\n' || c == ',':
		k.key, k.inKey = 0, true
	case c == '=':
		k.inKey = false
	case (c == '[' || c == '{') && !header:
		k.open = append(k.open, k.key)
		k.around += k.key
		k.key, k.inKey = 0, true
	case (c == ']' || c == '}') && !header:
		if last := len(k.open) - 1; last >= 0 {
			k.around -= k.open[last]
			k.open = k.open[:last]
		}
		k.key, k.inKey = 0, false
	case k.inKey:
		k.key += n
	}
}
