package layout

import (
	"strconv"
	"strings"
)

const (
	// maxTarMeta is the longest extended header, in bytes; archive/tar's limit.
	maxTarMeta = 1 << 20
	// maxTarExtended is the most extended headers, global ones included, between
	// two entries.
	maxTarExtended = 16
)

// tarMeta collects what extended headers say about the entry that follows.
type tarMeta struct {
	pax        bool   // there was a PAX header
	path, link string // "" where nothing was said
	size       int64  // -1 where nothing was said
}

func newTarMeta() tarMeta { return tarMeta{size: -1} }

// seen reports whether there was any extended header.
func (m *tarMeta) seen() bool { return m.pax || m.path != "" || m.link != "" }

// addPAX reads the records of a PAX header ('x'). A path, a target and a size
// count; a record of a sparse file is refused; others do not concern a layer.
// A second PAX header for one entry is refused: some readers add it to the
// first, others forget the first.
func (m *tarMeta) addPAX(data string) error {
	if m.pax {
		return errorf(ErrFormat, m.path, "tar entry has two PAX headers")
	}
	m.pax = true
	return paxRecords(data, func(key, value string) error {
		switch key {
		case "path":
			return setOnce(&m.path, value, "path")
		case "linkpath":
			return setOnce(&m.link, value, "target")
		case "size":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < 0 || value[0] == '+' {
				return errorf(ErrFormat, "", "a PAX header states the size %q, which can't be one", value)
			}
			if m.size >= 0 {
				return errorf(ErrFormat, "", "tar entry has two sizes in its extended headers")
			}
			m.size = n
			return nil
		}
		if isSparseKey(key) {
			return errorf(ErrFormat, m.path, "is a sparse file (%s)", quote(key))
		}
		return nil
	})
}

// checkGlobalPAX reads the records of a global PAX header ('g'), which git
// archive writes for a comment. One that would name or size entries is refused.
func checkGlobalPAX(data string) error {
	return paxRecords(data, func(key, _ string) error {
		if key == "path" || key == "linkpath" || key == "size" || isSparseKey(key) {
			return errorf(ErrFormat, "", "a global PAX header sets %s for all entries", quote(key))
		}
		return nil
	})
}

// addGNU takes GNU's long name ('L') or long target ('K').
func (m *tarMeta) addGNU(field *string, data, what string) error {
	return setOnce(field, strings.TrimSuffix(data, "\x00"), what)
}

func setOnce(field *string, value, what string) error {
	switch {
	case *field != "":
		return errorf(ErrFormat, value, "extended headers name its %s twice", what)
	case value == "" || strings.Contains(value, "\x00"):
		return errorf(ErrFormat, "", "an extended header states the %s %q, which can't be one", what, value)
	}
	*field = value
	return nil
}

// apply overrides h with what the extended headers said. A size that
// contradicts the header's own is refused: readers would disagree about where
// the next entry begins.
func (m *tarMeta) apply(h *rawHeader) error {
	if m.path != "" {
		h.name = m.path
	}
	if m.link != "" {
		h.link = m.link
	}
	if m.size >= 0 {
		same := h.size == m.size || h.size == 0 || (h.sizeIsMax && m.size > h.size)
		if !same {
			return errorf(ErrFormat, h.name, "a PAX header states the size %d, the tar header %d", m.size, h.size)
		}
		h.size = m.size
	}
	return nil
}

func isSparseKey(key string) bool {
	return strings.HasPrefix(key, "GNU.sparse.") || key == "SUN.holesdata" || key == "SCHILY.realsize"
}

// paxRecords calls f for every record "LENGTH KEY=VALUE\n" of data; LENGTH
// counts the whole record.
func paxRecords(data string, f func(key, value string) error) error {
	for data != "" {
		digits, _, found := strings.Cut(data, " ")
		n, err := strconv.ParseUint(digits, 10, 31)
		if !found || err != nil || n > uint64(len(data)) || n < uint64(len(digits))+3 || data[n-1] != '\n' {
			return errorf(ErrFormat, "", "a PAX record is not of the form LENGTH KEY=VALUE")
		}
		record := data[len(digits)+1 : n-1]
		data = data[n:]
		key, value, found := strings.Cut(record, "=")
		if !found || key == "" || strings.Contains(key, "\x00") {
			return errorf(ErrFormat, "", "a PAX record is not of the form LENGTH KEY=VALUE")
		}
		if err := f(key, value); err != nil {
			return err
		}
	}
	return nil
}
