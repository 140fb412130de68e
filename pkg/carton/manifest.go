package carton

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/sha256hex"
)

// Manifest is a carton's MANIFEST: the bytes that are the model's identity, and
// what they list. It never changes once made.
type Manifest struct {
	text     string
	hash     string
	entries  []Entry // their strings are parts of text
	order    []int32 // of entries by path; nil where they are in order
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
		return nil, errorf(ErrLimit, ManifestName, "is %d bytes long, and may be at most %d", len(raw),
			MaxManifestBytes)
	case len(raw) == 0:
		return nil, errorf(ErrFormat, ManifestName, "is empty")
	case !utf8.Valid(raw):
		return nil, errorf(ErrFormat, ManifestName, "is not UTF-8")
	case bytes.HasPrefix(raw, []byte("\ufeff")):
		return nil, errorf(ErrFormat, ManifestName, "begins with a byte order mark")
	}
	sum := sha256.Sum256(raw)
	m := &Manifest{text: string(raw), hash: hex.EncodeToString(sum[:])}
	m.entries = make([]Entry, 0, min(bytes.Count(raw, []byte("\n"))+1, MaxMembers))
	var paths Paths
	for _, own := range []string{ManifestName, LinksName} { // so that "manifest" is refused
		if err := paths.Add(own); err != nil {
			return nil, err
		}
	}
	rest, sorted := m.text, true
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
			sorted = false
		}
		m.entries = append(m.entries, e)
	}
	if !sorted {
		m.sort()
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

// Bytes returns MANIFEST verbatim, in a slice of the caller's: who reads it often
// takes [Manifest.NewReader].
func (m *Manifest) Bytes() []byte { return []byte(m.text) }

// Len returns how many bytes MANIFEST has.
func (m *Manifest) Len() int64 { return int64(len(m.text)) }

// NewReader returns a reader of MANIFEST's bytes.
func (m *Manifest) NewReader() *strings.Reader { return strings.NewReader(m.text) }

// ModelHash returns the lower-case hex sha256 of the bytes.
func (m *Manifest) ModelHash() string { return m.hash }

// Entries returns the lines in the order of the bytes. The caller must not
// change them.
func (m *Manifest) Entries() []Entry { return m.entries }

// Lookup returns the entry of a member.
func (m *Manifest) Lookup(path string) (Entry, bool) {
	i, ok := sort.Find(len(m.entries), func(i int) int { return strings.Compare(path, m.byPath(i).Path) })
	if !ok {
		return Entry{}, false
	}
	return *m.byPath(i), true
}

// byPath returns the i-th entry in bytewise order of paths.
func (m *Manifest) byPath(i int) *Entry {
	if m.order == nil {
		return &m.entries[i]
	}
	return &m.entries[m.order[i]]
}

// sort finds the order of entries that are not in order.
func (m *Manifest) sort() {
	m.order = make([]int32, len(m.entries))
	for i := range m.order {
		m.order[i] = int32(i) // #nosec G115 -- at most MaxMembers
	}
	slices.SortFunc(m.order, func(a, b int32) int { return strings.Compare(m.entries[a].Path, m.entries[b].Path) })
}

// Warnings says in what the bytes differ from what writers of the format
// produce, without being wrong.
func (m *Manifest) Warnings() []string { return m.warnings }

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
		return Entry{}, atLine(line, errorf(ErrFormat, "", "the line has no =, and should be path=hash"))
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
	if !sha256hex.Is(h) {
		return errorf(ErrFormat, "", "the hash %s is not %s", errtext.Quoted(h), sha256hex.Want)
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
