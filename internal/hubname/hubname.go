// Package hubname has the one rule for the names that a model hub gives: of
// repositories, and of their revisions.
package hubname

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

// MaxRepository is the longest name of a repository, in bytes.
const MaxRepository = 96

// segment is a part of a name: letters, digits, "_", "-" and ".", the first and last
// of them a letter, a digit or "_".
// https://github.com/huggingface/huggingface_hub/blob/v1.0.0/src/huggingface_hub/utils/_validators.py
var segment = regexp.MustCompile(`^[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?$`)

// commit is a revision that never moves.
var commit = regexp.MustCompile(`^[0-9a-f]{40}$`)

// CheckRepository returns an error unless name is one of a repository, "org/name" or
// "name".
func CheckRepository(name string) error {
	parts := strings.Split(name, "/")
	ok := len(parts) <= 2 && len(name) <= MaxRepository && !strings.Contains(name, "--") &&
		!strings.Contains(name, "..") &&
		!strings.HasSuffix(name, ".git")
	for _, p := range parts {
		ok = ok && segment.MatchString(p)
	}
	if !ok {
		return fmt.Errorf("got the repository %s, want ORG/NAME", errtext.Quote(name))
	}
	return nil
}

// IsRepository reports whether name is one of a repository.
func IsRepository(name string) bool { return CheckRepository(name) == nil }

// CheckRevision returns an error unless name can be one of a branch, a tag or a
// commit: what git allows, printable.
// https://git-scm.com/docs/git-check-ref-format
func CheckRevision(name string) error {
	bad := name == "" || len(name) > 255 || strings.ContainsAny(name, " ~^:?*[\\") || strings.Contains(name, "..") ||
		strings.Contains(name, "@{") || strings.Contains(name, "//") || strings.HasPrefix(name, "/") ||
		strings.HasPrefix(name, "-") ||
		strings.HasSuffix(name, "/") || strings.HasSuffix(name, ".") || strings.HasSuffix(name, ".lock") ||
		!errtext.IsPrintable(name)
	if bad {
		return fmt.Errorf("got the revision %s, want a branch, a tag or a commit", errtext.Quote(name))
	}
	return nil
}

// IsCommit reports whether a revision is a commit's full hash.
func IsCommit(revision string) bool { return commit.MatchString(revision) }
