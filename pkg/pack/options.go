package pack

import (
	"errors"
	"fmt"
	"strings"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/progress"
)

// Options say what the carton of some files is to be.
type Options struct {
	// Info is what carton.toml says. What is empty is filled in where the files tell
	// it; the runner's compat version also where the runner is known.
	carton.Info

	// Checkout is the address of the repository that the files lie in; it becomes
	// Repository where that is empty.
	Checkout string
	// InfoFile is a carton.toml that is kept byte for byte. Nothing above may be
	// given beside it.
	InfoFile string
	// Misc is a folder that becomes misc/.
	Misc string
	// TensorData is a folder that becomes tensor_data/. It holds an index.toml.
	TensorData string
	// AddSelfTests and AddExamples bring tensors with them, which become tensor_data/.
	AddSelfTests, AddExamples []Test
	// Links are addresses that serve members already.
	Links []Link

	// Exclude are patterns, as in [carton.ExtractOptions], of what is left out of a
	// folder besides [LeftOutByDefault] and what its [IgnoreFile] lists; Include are
	// those of what is brought back, whatever left it out. A folder that matches
	// stands for all in it.
	Exclude, Include []string

	// Shard cuts models with a safetensors or GGUF file of more than so many bytes into
	// files of at most so many, as the tools of those formats do; 0 cuts nothing. One
	// tensor is never cut.
	Shard int64

	// Hashes makes [OpenLoose] hash the files, as [ViewListing] always does, so that they
	// can be compared with others: all are read.
	Hashes bool

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
func Missing(runner carton.Runner) *MissingError {
	e := &MissingError{Runner: runner.Name}
	if runner.Name == "" {
		e.Fields = append(e.Fields, FieldRunner)
	}
	if runner.RequiredFrameworkVersion == "" {
		e.Fields = append(e.Fields, FieldFrameworkVersion)
	}
	if r := knownRunner(runner.Name); r != nil {
		for _, opt := range r.Opts {
			if _, ok := runner.Opts[opt]; !ok {
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
	for _, f := range o.Fields() {
		return f.Key
	}
	if len(o.AddSelfTests)+len(o.AddExamples) > 0 {
		return "a self test or an example"
	}
	return ""
}
