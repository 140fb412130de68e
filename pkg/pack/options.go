package pack

import (
	"errors"
	"fmt"
	"strings"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/progress"
)

// Options say what the carton of some files is to be. Fields that carton.toml
// has are described there: see [carton.Info].
type Options struct {
	// Runner names what loads the model; see [Runners] for those that are known.
	Runner string
	// FrameworkVersion is which versions of the runner's framework, a version
	// requirement as in Cargo.toml.
	FrameworkVersion string
	// RunnerCompat is the version of what is in model/; nil takes the runner's.
	RunnerCompat *uint64
	// RunnerOpts are the runner's options: int64, float64, bool or string.
	RunnerOpts map[string]any

	Name, ShortDescription, ModelDescription string
	License, Repository, Homepage            string
	Platforms                                []string
	Inputs, Outputs                          []carton.TensorSpec

	// InfoFile is a carton.toml that is kept byte for byte. Nothing above may be
	// given beside it.
	InfoFile string
	// Misc is a folder that becomes misc/.
	Misc string
	// TensorData is a folder that becomes tensor_data/. It holds an index.toml.
	TensorData string
	// SelfTests and Examples bring tensors with them, which become tensor_data/.
	SelfTests, Examples []Test
	// Links are addresses that serve members already.
	Links []Link

	// Exclude are patterns, as in [carton.ExtractOptions], of what is left out of a
	// folder besides [LeftOutByDefault] and what its [IgnoreFile] lists; Include are
	// those of what is brought back, whatever left it out. A folder that matches
	// stands for all in it.
	Exclude, Include []string

	// Update packs a folder that is a carton, whose files were changed, with a new
	// MANIFEST. Its carton.toml stays as it is, and so does the folder.
	Update bool
	// Strict refuses what is a warning else.
	Strict bool
	// AllowInvalid packs files that are broken: recorded checksums that don't match,
	// weights that break their format, a carton.toml with errors.
	AllowInvalid bool
	// Concurrency is how many files are hashed at once; 0 is as many as there are
	// processors.
	Concurrency int
	// Progress is told of every file that is hashed.
	Progress progress.Func
}

// ErrOptions is wrapped by errors about options that can't be used together, or
// not so.
var ErrOptions = errors.New("options can't be used so")

// ErrCarton is wrapped by the error for a path that is a carton already.
var ErrCarton = errors.New("is a carton already")

// optionError is an error about the options.
type optionError struct{ text string }

func (e *optionError) Error() string        { return e.text }
func (e *optionError) Is(target error) bool { return target == ErrOptions }

func optionsf(format string, args ...any) error {
	return &optionError{fmt.Sprintf(format, args...)}
}

// Field is a value of carton.toml that has to be given.
type Field string

// The fields that no file can always tell.
const (
	FieldRunner           Field = "runner_name"
	FieldFrameworkVersion Field = "required_framework_version"
)

// MissingError names all that a carton needs and nobody said. It wraps
// [ErrOptions].
type MissingError struct {
	// Fields are what is missing, in carton.toml's order.
	Fields []Field
	// Opts are the runner's options that it can't do without.
	Opts []string
	// Runner is the runner, where that is known.
	Runner string
}

// Missing says what a carton still needs for a runner, nil for nothing.
func Missing(runner, frameworkVersion string, opts map[string]any) *MissingError {
	e := &MissingError{Runner: runner}
	if runner == "" {
		e.Fields = append(e.Fields, FieldRunner)
	}
	if frameworkVersion == "" {
		e.Fields = append(e.Fields, FieldFrameworkVersion)
	}
	if r := knownRunner(runner); r != nil {
		for _, opt := range r.Opts {
			if _, ok := opts[opt]; !ok {
				e.Opts = append(e.Opts, opt)
			}
		}
	}
	if len(e.Fields)+len(e.Opts) == 0 {
		return nil
	}
	return e
}

// Error names the fields.
func (e *MissingError) Error() string {
	var names []string
	for _, f := range e.Fields {
		names = append(names, string(f))
	}
	for _, opt := range e.Opts {
		names = append(names, "the option "+opt)
	}
	return "nothing says " + strings.Join(names, " and ")
}

// Is reports whether target is [ErrOptions].
func (e *MissingError) Is(target error) bool { return target == ErrOptions }

// describes returns the name of a field that is given, "" where none is that
// describes the model.
func (o *Options) describes() string {
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"a runner", o.Runner != ""},
		{"a framework version", o.FrameworkVersion != ""},
		{"a runner's compat version", o.RunnerCompat != nil},
		{"runner options", len(o.RunnerOpts) > 0},
		{"a name", o.Name != ""},
		{"a description", o.ShortDescription != "" || o.ModelDescription != ""},
		{"a license", o.License != ""},
		{"a repository", o.Repository != ""},
		{"a homepage", o.Homepage != ""},
		{"platforms", len(o.Platforms) > 0},
		{"inputs or outputs", len(o.Inputs)+len(o.Outputs) > 0},
		{"self tests or examples", len(o.SelfTests)+len(o.Examples) > 0},
	} {
		if f.set {
			return f.name
		}
	}
	return ""
}
