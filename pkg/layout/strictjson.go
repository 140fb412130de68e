package layout

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// maxJSONDepth is the deepest nesting that is read; an image manifest needs 4.
const maxJSONDepth = 32

// shape says which keys an object's readers look for, and the shape of what is
// below them. encoding/json takes keys in any case and the last of duplicates;
// other readers don't, so what differs only there is refused.
type shape map[string]shape

// freeShape is that of a value without keys of its own: any, or a map.
var freeShape shape

var (
	descriptorShape = shape{
		"mediaType": freeShape, "digest": freeShape, "size": freeShape, "urls": freeShape,
		"annotations": freeShape, "data": freeShape, "artifactType": freeShape,
		"platform": {
			"architecture": freeShape, "os": freeShape, "os.version": freeShape,
			"os.features": freeShape, "variant": freeShape,
		},
	}
	manifestShape = shape{
		"schemaVersion": freeShape, "mediaType": freeShape, "artifactType": freeShape,
		"config": descriptorShape, "layers": descriptorShape, "subject": descriptorShape,
		"annotations": freeShape, "manifests": descriptorShape, "fsLayers": freeShape,
	}
	layoutShape = shape{"imageLayoutVersion": freeShape}
)

// checkJSON wants one object of UTF-8, without duplicate keys, without keys
// that differ from those of s in case alone, and without anything behind it.
// The shape of a key holds for the object below it, or for each of an array's.
func checkJSON(b []byte, s shape) error {
	if !utf8.Valid(b) {
		return errorf(ErrFormat, "", "is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	t, err := d.Token()
	if err != nil {
		return notJSON(err)
	}
	if t != json.Delim('{') {
		return errorf(ErrFormat, "", "is not a JSON object")
	}
	if err := checkObject(d, s, 1); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errorf(ErrFormat, "", "has data behind the JSON object")
	}
	return nil
}

// checkObject reads an object whose brace is read already.
func checkObject(d *json.Decoder, s shape, depth int) error {
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return notJSON(err)
		}
		key, ok := t.(string)
		if !ok {
			return notJSON(fmt.Errorf("got %v, want a key", t))
		}
		if seen[key] {
			return errorf(ErrFormat, "", "has the JSON key %s twice", quote(key))
		}
		seen[key] = true
		below, known := s[key]
		if !known {
			if err := checkCase(key, s); err != nil {
				return err
			}
		}
		if err := checkValue(d, below, depth); err != nil {
			return err
		}
	}
	return closing(d)
}

func checkValue(d *json.Decoder, s shape, depth int) error {
	t, err := d.Token()
	if err != nil {
		return notJSON(err)
	}
	if depth == maxJSONDepth {
		return errorf(ErrFormat, "", "JSON is nested deeper than %d", maxJSONDepth)
	}
	switch t {
	case json.Delim('{'):
		return checkObject(d, s, depth+1)
	case json.Delim('['):
		for d.More() {
			if err := checkValue(d, s, depth+1); err != nil {
				return err
			}
		}
		return closing(d)
	}
	return nil
}

// checkCase refuses a key that encoding/json would take for one of s.
func checkCase(key string, s shape) error {
	for known := range s {
		if strings.EqualFold(key, known) {
			return errorf(ErrFormat, "", "has the JSON key %s, want %s", quote(key), known)
		}
	}
	return nil
}

func closing(d *json.Decoder) error {
	if _, err := d.Token(); err != nil {
		return notJSON(err)
	}
	return nil
}

func notJSON(err error) error {
	return &Error{Kind: ErrFormat, Msg: "is not JSON", Err: err}
}
