package carton

import "context"

// Info is a carton.toml, typed. A carton keeps the bytes that it has: what [Info]
// Marshal writes is for cartons that are made.
type Info struct {
	SpecVersion      int    `json:"specVersion"` // always 1
	ModelName        string `json:"name,omitempty"`
	ShortDescription string `json:"shortDescription,omitempty"` // should be at most 100 characters
	// Markdown; links are https URLs or @misc/ references
	ModelDescription  string       `json:"modelDescription,omitempty"`
	License           string       `json:"license,omitempty"`    // should be an SPDX expression
	Repository        string       `json:"repository,omitempty"` // URL of the code that packs the carton
	Homepage          string       `json:"homepage,omitempty"`   // URL
	RequiredPlatforms []string     `json:"requiredPlatforms"`    // none: any
	Inputs            []TensorSpec `json:"inputs"`
	Outputs           []TensorSpec `json:"outputs"`
	SelfTests         []Test       `json:"-"`
	Examples          []Test       `json:"-"`
	Runner            Runner       `json:"runner"`
	// Categories is the table [categories], which is no part of the carton format:
	// by the paths of members, what they are, where their names say something else,
	// as one of "weight", "weight.config", "code", "doc" and "dataset". Whatever in
	// it is no string is left out; neither paths nor words are checked.
	Categories map[string]string `json:"-"`
	// Annotations is the table [annotations], which is no part of the carton format
	// either: what an artifact of the carton is to say of it, by OCI's names for that.
	// Whatever in it is no string is left out; names are not checked.
	Annotations map[string]string `json:"-"`
	// Extra is TOML that Marshal writes behind [runner]: tables that the format does
	// not have. ParseInfo leaves it empty.
	Extra string `json:"-"`
}

// Runner says what loads the model.
type Runner struct {
	Name string `json:"name"`
	// RequiredFrameworkVersion is a version requirement as in Cargo.toml.
	RequiredFrameworkVersion string `json:"requiredFrameworkVersion"`
	// CompatVersion is the version of what is in model/, for the runner; nil
	// where carton.toml has none, and then the reference loader refuses it.
	CompatVersion *uint64 `json:"compatVersion,omitempty"`
	// Opts are the runner's own options: int64, float64, string or bool.
	Opts map[string]any `json:"opts,omitempty"`
}

// TensorSpec declares an input or output.
type TensorSpec struct {
	Name         string `json:"name"`
	DType        DType  `json:"dtype"`
	Shape        Shape  `json:"shape"`
	Description  string `json:"description,omitempty"`
	InternalName string `json:"-"` // what the runner calls it; "" for the same
}

// Test is a self test, with inputs and, optionally, what they should give; or an
// example, with inputs and outputs to show. The maps are from names of inputs or
// outputs to "@tensor_data/NAME", in an example also to "@misc/PATH".
type Test struct {
	Name        string
	Description string
	Inputs      map[string]string
	Outputs     map[string]string
}

// ReadInfo reads a carton's carton.toml, verified against MANIFEST, and parses
// it as [ParseInfo] does.
func ReadInfo(ctx context.Context, src Source) (*Info, error) {
	b, err := readInfo(ctx, src)
	if err != nil {
		return nil, err
	}
	return ParseInfo(b)
}

func readInfo(ctx context.Context, src Source) ([]byte, error) {
	if _, ok := src.Manifest().Lookup(InfoName); !ok {
		return nil, errorf(ErrFormat, InfoName, "is missing: MANIFEST does not list it")
	}
	return ReadMember(ctx, src, InfoName, MaxInfoBytes)
}

// ParseInfo parses the bytes of a carton.toml and validates every field by
// itself: types, versions, platforms, shapes, references' form. Unknown tables
// and keys are ignored. The error is the first of those that [Check] would
// find: ErrFormat, ErrLimit, ErrInsecurePath, or ErrVersion for a spec_version
// other than 1.
func ParseInfo(b []byte) (*Info, error) {
	info, f := parseInfo(b)
	if err := f.first(); err != nil {
		return nil, err
	}
	return info, nil
}

// ParseInfoLoosely returns what can be read of a carton.toml that [ParseInfo]
// refuses: fields that break a rule are left empty. It is empty itself where the
// bytes are no TOML, or of another spec_version.
func ParseInfoLoosely(b []byte) *Info {
	if info, _ := parseInfo(b); info != nil {
		return info
	}
	return &Info{}
}
