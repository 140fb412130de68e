package carton

import (
	"errors"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	"github.com/carton-oci/carton-oci/internal/tomlguard"
)

// decodeTOML parses b, a file called name of at most limit bytes and items
// keys, values and tables. What makes a parser run out of stack, memory or time
// is refused before it runs. Faults of syntax, duplicate keys among them, are
// ErrFormat.
func decodeTOML(name string, b []byte, limit, items int) (map[string]any, error) {
	switch {
	case len(b) > limit:
		return nil, errorf(ErrLimit, name, "is %d bytes long, and may be at most %d", len(b), limit)
	case !utf8.Valid(b):
		return nil, errorf(ErrFormat, name, "is not UTF-8")
	}
	if err := tomlguard.Check(b, MaxNesting, items); err != nil {
		return nil, errorf(ErrLimit, name, "%v", err)
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
