package zipdir

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

// MaxName is the longest name, in bytes, where [Options] has no rule of its own.
const MaxName = 4096

// maxFolders is the most folders that names may lie in, so that long names
// can't ask for more memory than the directory takes.
const maxFolders = 1 << 20

// NameFault says what is wrong with a name that is to be a path below some
// folder: relative, clean, separated by slashes, UTF-8 without control characters
// and backslashes. It returns "" for a good one.
func NameFault(name string) string {
	switch {
	case !utf8.ValidString(name):
		return "name is not UTF-8"
	case strings.HasPrefix(name, "/"):
		return "name is absolute"
	case strings.Contains(name, `\`):
		return "name holds a backslash"
	case path.Clean(name) != name || name == "." || name == ".." || strings.HasPrefix(name, "../"):
		return "name is not clean: it holds an empty, . or .. component"
	}
	for _, r := range name {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return fmt.Sprintf("name holds the control character %U", r)
		}
	}
	return ""
}

// plainNames is the rule for names where [Options] has none: good ones, of which
// none occurs twice and no file is also a folder.
type plainNames struct {
	entries map[string]bool // true: a folder
	folders map[string]bool // that entries lie in
}

func (n *plainNames) add(name string, folder bool) error {
	switch {
	case name == "":
		return errorf("an entry has an empty name")
	case len(name) > MaxName:
		return of(name[:64]+"…", errorf("name is %d bytes long, want at most %d", len(name), MaxName))
	}
	if fault := NameFault(name); fault != "" {
		return of(name, errorf("%s", fault))
	}
	if _, seen := n.entries[name]; seen {
		return of(name, errorf("name occurs twice"))
	}
	if n.folders[name] && !folder {
		return of(name, errorf("is a file and also the folder of another"))
	}
	n.entries[name] = folder
	for dir := path.Dir(name); dir != "." && !n.folders[dir]; dir = path.Dir(dir) {
		if folder, seen := n.entries[dir]; seen && !folder {
			return of(name, errorf("lies below %s, which is a file", errtext.Quote(dir)))
		}
		if len(n.folders) == maxFolders {
			return limitf("entries lie in more than %d folders", maxFolders)
		}
		n.folders[dir] = true
	}
	return nil
}
