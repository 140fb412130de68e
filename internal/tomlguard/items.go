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
// cost a parser some five hundred.
func CheckItems(b []byte, maxItems int) error {
	s := scanner{rest: b, max: math.MaxInt, line: 1, fresh: true}
	for items := 0; len(s.rest) > 0; {
		switch s.rest[0] { // never inside a string or comment
		case '=', '.', ',', '[', '{':
			items++
		}
		if items > maxItems {
			return fmt.Errorf("line %d: %w: more than %d", s.line, ErrItems, maxItems)
		}
		if err := s.step(); err != nil {
			return err
		}
	}
	return nil
}
