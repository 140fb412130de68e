package carton

import (
	"errors"
	"strings"

	"github.com/carton-oci/carton-oci/internal/place"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"golang.org/x/text/unicode/norm"
)

// A name that is a member's may be none that a file can have where a carton is
// extracted. Two rules find it before anything is fetched: what an operating system is
// known for, and what the file system of the output says when it is asked. That two
// names differ only in case or normalisation is no question here: no carton has such
// names ([Paths]).

// checkLocalName refuses a path that files of an operating system can't have,
// or would have in another form.
func checkLocalName(goos, p string) error {
	switch goos {
	case "darwin", "ios":
		if !norm.NFC.IsNormalString(p) {
			return unheld(p, "name is not in Unicode's normal form C, and would not stay as it is on macOS", nil)
		}
	case "windows":
		if why := notOnWindows(p); why != "" {
			return unheld(p, why, nil)
		}
	}
	return nil
}

// commonName is how many bytes a component may have on every file system that is
// about: those of encrypted folders (eCryptfs) have the least.
const commonName = 143

// isUncommon reports whether some file system may not hold a path as it is.
func isUncommon(p string) bool {
	for name := range strings.SplitSeq(p, "/") {
		if len(name) > commonName {
			return true
		}
	}
	return !isASCII(p) || unportable(p) != ""
}

// misfit makes an error of the package place one of a member's name.
func misfit(err error) error {
	var m *place.Misfit
	if !errors.As(err, &m) {
		return err
	}
	return unheld(m.Path, "the file system of the output can't hold it", m.Err)
}

// unheld is the error for a member that no file can be made of.
func unheld(p, why string, err error) error {
	return hint.With(&Error{Path: p, Kind: ErrInsecurePath, Msg: why, Err: err},
		"keep it in one .carton file, which holds every name (%s), or leave the member out (%s)", hint.Output,
		hint.Exclude)
}
