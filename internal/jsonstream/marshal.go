package jsonstream

import (
	"bytes"
	"encoding/json"
)

// Marshal is [json.Marshal] without escapes for HTML: what is no markup stays as it was
// written. Where indent is not "", each level is on lines of its own, for people.
func Marshal(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
