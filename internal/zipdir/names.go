package zipdir

import (
	"hash/crc32"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

// MaxName is the longest name, in bytes.
const MaxName = 4096

// checkName is the rule for one name.
func checkName(p string) error {
	switch {
	case p == "":
		return errorf("an entry has an empty name")
	case len(p) > MaxName:
		return errorf("%s…: name is %d bytes long, want at most %d", errtext.Quote(p[:64]), len(p), MaxName)
	case !utf8.ValidString(p):
		return errorf("%s: name is not UTF-8", errtext.Quote(p))
	case p[0] == '/':
		return errorf("%s: name is absolute", errtext.Quote(p))
	case strings.Contains(p, `\`):
		return errorf("%s: name holds a backslash", errtext.Quote(p))
	case path.Clean(p) != p || p == "." || p == ".." || strings.HasPrefix(p, "../"):
		return errorf("%s: name is not clean: it holds an empty, . or .. component", errtext.Quote(p))
	}
	for _, r := range p {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return errorf("%s: name holds the control character %U", errtext.Quote(p), r)
		}
	}
	return nil
}

// maxFolders is the most folders that names may lie in, so that long names
// can't ask for more memory than the directory takes.
const maxFolders = 1 << 20

// checkNames compares names with each other.
func checkNames(entries []*Entry) error {
	files := make(map[string]bool, len(entries)) // true: a file, false: a folder
	for _, e := range entries {
		if _, ok := files[e.Name]; ok {
			return e.errorf("name occurs twice")
		}
		files[e.Name] = !e.folder
	}
	folders := map[string]bool{}
	for _, e := range entries {
		for dir := path.Dir(e.Name); dir != "." && !folders[dir]; dir = path.Dir(dir) {
			if files[dir] {
				return e.errorf("lies below %s, which is a file", errtext.Quote(dir))
			}
			if len(folders) == maxFolders {
				return errorf("entries lie in more than %d folders", maxFolders)
			}
			folders[dir] = true
		}
	}
	return nil
}

// checkSecondName refuses an entry whose name in the Unicode extra field is
// another than in its header: readers would see different files.
func checkSecondName(name string, data []byte) error {
	if len(data) < 5 || data[0] != 1 {
		return errorf("Unicode name field is none of version 1")
	}
	if le32(data[1:]) == crc32.ChecksumIEEE([]byte(name)) && string(data[5:]) != name {
		return errorf("has a second name in its extra fields: %s", errtext.Quote(string(data[5:])))
	}
	return nil
}
