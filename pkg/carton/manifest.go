package carton

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"
)

// Manifest is a carton's MANIFEST: the bytes that are the model's identity, and
// what they list. It never changes once made.
type Manifest struct {
	raw      []byte
	hash     string
	entries  []Entry
	byPath   map[string]int
	warnings []string
}

// Entry is one line of MANIFEST.
type Entry struct {
	Path string
	Hash string // lower-case hex sha256
	Line int    // its line in MANIFEST's bytes, from 1
}

// ParseManifest reads the bytes of a MANIFEST and keeps them as they are.
//
// Every line is path=hash, split at the last "=", with 64 lower-case hex digits.
// A blank line, a byte order mark, a path that [Paths] refuses, and an entry for
// MANIFEST or LINKS themselves are errors; lines out of order, CRLF and a
// missing final newline are [Manifest.Warnings]. See
// https://github.com/VivekPanyam/carton, docs/specification/format.md.
func ParseManifest(raw []byte) (*Manifest, error) {
	switch {
	case len(raw) > MaxManifestBytes:
		return nil, errorf(ErrLimit, ManifestName, "is %d bytes, want at most %d", len(raw), MaxManifestBytes)
	case len(raw) == 0:
		return nil, errorf(ErrFormat, ManifestName, "is empty")
	case !utf8.Valid(raw):
		return nil, errorf(ErrFormat, ManifestName, "is not UTF-8")
	case bytes.HasPrefix(raw, []byte("\ufeff")):
		return nil, errorf(ErrFormat, ManifestName, "begins with a byte order mark")
	}
	m := newManifest(bytes.Clone(raw))
	m.entries = make([]Entry, 0, min(bytes.Count(raw, []byte("\n"))+1, MaxMembers))
	var paths Paths
	for _, own := range []string{ManifestName, LinksName} { // so that "manifest" is refused
		if err := paths.Add(own); err != nil {
			return nil, err
		}
	}
	rest := string(m.raw)
	for line := 1; rest != ""; line++ {
		text, after, ended := strings.Cut(rest, "\n")
		rest = after
		if !ended {
			m.warn("does not end with a newline")
		}
		if t, ok := strings.CutSuffix(text, "\r"); ok {
			m.warn("has CRLF line ends")
			text = t
		}
		if line > MaxMembers {
			return nil, errorf(ErrLimit, ManifestName, "lists more than %d members", MaxMembers)
		}
		e, err := parseEntry(text, line)
		if err != nil {
			return nil, err
		}
		if err := paths.Add(e.Path); err != nil {
			return nil, atLine(line, err)
		}
		if len(m.entries) > 0 && m.entries[len(m.entries)-1].Path > e.Path {
			m.warn("is not in bytewise order of paths")
		}
		m.add(e)
	}
	return m, nil
}

// NewManifest makes the MANIFEST that lists the entries: bytewise order, one
// path=hash a line, each ended by a newline. Entry.Line is ignored. Entries that
// [ParseManifest] would refuse are the same errors here.
func NewManifest(entries []Entry) (*Manifest, error) {
	sorted := slices.SortedFunc(slices.Values(entries), func(a, b Entry) int {
		return strings.Compare(a.Path, b.Path)
	})
	var b bytes.Buffer
	for _, e := range sorted {
		if err := CheckPath(e.Path); err != nil { // a newline would forge a line
			return nil, err
		}
		b.WriteString(e.Path + "=" + e.Hash + "\n")
	}
	return ParseManifest(b.Bytes())
}

// Bytes returns MANIFEST verbatim. The caller must not change them.
func (m *Manifest) Bytes() []byte { return m.raw }

// ModelHash returns the lower-case hex sha256 of the bytes.
func (m *Manifest) ModelHash() string { return m.hash }

// Entries returns the lines in the order of the bytes. The caller must not
// change them.
func (m *Manifest) Entries() []Entry { return m.entries }

// Lookup returns the entry of a member.
func (m *Manifest) Lookup(path string) (Entry, bool) {
	i, ok := m.byPath[path]
	if !ok {
		return Entry{}, false
	}
	return m.entries[i], true
}

// Warnings says in what the bytes differ from what writers of the format
// produce, without being wrong.
func (m *Manifest) Warnings() []string { return m.warnings }

func newManifest(raw []byte) *Manifest {
	sum := sha256.Sum256(raw)
	return &Manifest{raw: raw, hash: hex.EncodeToString(sum[:]), byPath: map[string]int{}}
}

func (m *Manifest) add(e Entry) {
	m.byPath[e.Path] = len(m.entries)
	m.entries = append(m.entries, e)
}

func (m *Manifest) warn(text string) {
	if !slices.Contains(m.warnings, text) {
		m.warnings = append(m.warnings, text)
	}
}

func parseEntry(text string, line int) (Entry, error) {
	i := strings.LastIndexByte(text, '=')
	if i < 0 {
		if text == "" {
			return Entry{}, atLine(line, errorf(ErrFormat, "", "the line is blank"))
		}
		return Entry{}, atLine(line, errorf(ErrFormat, "", "the line has no =, want path=hash"))
	}
	e := Entry{Path: text[:i], Hash: text[i+1:], Line: line}
	if e.Path == ManifestName || e.Path == LinksName {
		return Entry{}, atLine(line, errorf(ErrFormat, "", "lists %s, which has no entry", e.Path))
	}
	if err := checkHash(e.Hash); err != nil {
		return Entry{}, atLine(line, err)
	}
	return e, nil
}

// checkHash wants 64 lower-case hex digits.
func checkHash(h string) error {
	if len(h) != 2*sha256.Size {
		return errorf(ErrFormat, "", "got a hash of %d digits, want %d", len(h), 2*sha256.Size)
	}
	for _, c := range []byte(h) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return errorf(ErrFormat, "", "got the hash %s, want lower-case hex", quotePath(h))
		}
	}
	return nil
}

// atLine says in which line of MANIFEST the fault is.
func atLine(line int, err error) error {
	kind := ErrFormat
	if e, ok := err.(*Error); ok { //nolint:errorlint // made in this package, never wrapped
		kind = e.Kind
	}
	return errorf(kind, ManifestName, "line %d: %s", line, err)
}
