package modelfile

import (
	"errors"
	"io"

	"github.com/carton-oci/carton-oci/pkg/hint"
)

// PointerPrefix begins every git-lfs pointer, which git-lfs leaves in a file's place
// (https://github.com/git-lfs/git-lfs/blob/v3.7.0/docs/spec.md).
const PointerPrefix = "version https://git-lfs"

// ErrPointer: the file is a git-lfs pointer to the real one.
var ErrPointer = errors.New("is a git-lfs pointer, not the file itself")

// CheckPointer returns [ErrPointer] for a file that begins with head, and goes on
// with r, as a pointer does; nil for any other.
func CheckPointer(head []byte, r io.Reader) error {
	begin := make([]byte, len(PointerPrefix))
	n := copy(begin, head)
	if string(begin[:n]) != PointerPrefix[:n] {
		return nil
	}
	if _, err := io.ReadFull(r, begin[n:]); err != nil || string(begin) != PointerPrefix {
		return nil //nolint:nilerr // too short for one
	}
	return hint.With(ErrPointer, "fetch the real file: git lfs pull")
}
