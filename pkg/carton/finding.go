package carton

import (
	"cmp"
	"maps"
	"slices"
)

// Finding is one thing that [Check] or [Verify] found wrong with a carton.
type Finding struct {
	// Severity says whether it breaks the format.
	Severity Severity
	// Path is the member that it is about; "" for the carton as a whole.
	Path string
	// Err says what is wrong, with the path in it.
	Err *Error
}

// Severity says what a finding means.
type Severity int

const (
	// SeverityWarning: readers accept it, though it is not as the format wants
	// it, or not portable.
	SeverityWarning Severity = iota
	// SeverityLoader: the format's reference loader fails on it, with an error or a
	// panic. The carton can be read here, and nothing that it holds is lost; but
	// nobody can load it. What the loader fails on follows from its source:
	// https://github.com/VivekPanyam/carton, source/carton/src/format/v1.
	SeverityLoader
	// SeverityError: it breaks the format, or the content is not what MANIFEST
	// promises.
	SeverityError
)

// String returns "warning" or "error".
func (s Severity) String() string {
	if s == SeverityWarning {
		return "warning"
	}
	return "error"
}

// loaderFails is what findings of SeverityLoader begin with.
const loaderFails = "the format's loader fails on this: "

func sortedKeys[V any](m map[string]V) []string {
	return slices.SortedFunc(maps.Keys(m), cmp.Compare[string])
}
