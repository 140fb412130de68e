package carton

import (
	"bytes"
	"errors"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

// decodeTOML parses b, a file called name of at most limit bytes and items
// keys, values and tables. What makes a parser run out of stack, memory or time
// is refused before it runs. Faults of syntax, duplicate keys among them, are
// ErrFormat.
func decodeTOML(name string, b []byte, limit, items int) (map[string]any, error) {
	switch {
	case len(b) > limit:
		return nil, errorf(ErrLimit, name, "is %d bytes, want at most %d", len(b), limit)
	case !utf8.Valid(b):
		return nil, errorf(ErrFormat, name, "is not UTF-8")
	}
	if err := checkTOMLSize(name, b, items); err != nil {
		return nil, err
	}
	var table map[string]any
	if _, err := toml.Decode(string(b), &table); err != nil {
		var p toml.ParseError
		if errors.As(err, &p) {
			return nil, errorf(ErrFormat, name, "line %d: %s", p.Position.Line, quotePath(p.Message))
		}
		return nil, errorf(ErrFormat, name, "is not TOML: %s", quotePath(err.Error()))
	}
	if table == nil {
		table = map[string]any{}
	}
	return table, nil
}

// checkTOMLSize walks over b once, knowing of TOML's syntax only strings,
// comments and brackets, and counts: how deep arrays, tables and dotted keys
// nest, at most [MaxNesting], and what costs a parser memory, at most items.
func checkTOMLSize(name string, b []byte, items int) error {
	var open []int // for each bracket, the dots of the key before it
	depth, dots, count := 0, 0, 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '#':
			if n := bytes.IndexByte(b[i:], '\n'); n >= 0 {
				i += n
			} else {
				i = len(b)
			}
			dots = 0
		case '"', '\'':
			i = skipTOMLString(b, i) - 1
		case '\n':
			dots = 0
		case ',':
			dots = 0
			count++
		case '=':
			count++
		case '.':
			dots++
			count++
		case '[', '{':
			open = append(open, dots)
			depth += 1 + dots
			dots = 0
			count++
		case ']', '}':
			if n := len(open); n > 0 {
				depth -= 1 + open[n-1]
				open = open[:n-1]
			}
			dots = 0
		}
		if depth+dots > MaxNesting {
			return errorf(ErrLimit, name, "nests deeper than %d", MaxNesting)
		}
		if count > items {
			return errorf(ErrLimit, name, "holds more than %d keys, values and tables", items)
		}
	}
	return nil
}

// skipTOMLString returns the offset behind the string that begins at b[i]:
// basic or literal, on one line or several.
func skipTOMLString(b []byte, i int) int {
	quote := b[i]
	multi := bytes.HasPrefix(b[i:], []byte{quote, quote, quote})
	if multi {
		i += 2
	}
	for i++; i < len(b); i++ {
		switch {
		case b[i] == '\\' && quote == '"':
			i++
		case b[i] == '\n' && !multi:
			return i
		case b[i] == quote && !multi:
			return i + 1
		case b[i] == quote && bytes.HasPrefix(b[i:], []byte{quote, quote, quote}):
			for i += 3; i < len(b) && b[i] == quote; i++ { // up to two belong to the string
			}
			return i
		}
	}
	return len(b)
}
