package pmf

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

// Limits on what is read from outside.
const (
	// MaxMetadataBytes is the largest metadata.yaml: some 8,000 checkpoints. A
	// parser needs up to 150 bytes for each byte of a document.
	MaxMetadataBytes = 1 << 20
	// MaxNesting is how deep trees may nest through data/initialisation.
	MaxNesting = 16
	// MaxFiles is the most files that a folder of the format may hold.
	MaxFiles = 100_000
)

// ErrInvalid is wrapped by every error that is about a broken rule.
var ErrInvalid = errors.New("breaks the Plums Model Format")

// Options change what [Read] accepts.
type Options struct {
	// Strict makes violations of warnings: unknown keys are refused, and whatever
	// else the format's own writer would not produce.
	Strict bool
}

// Model is what a tree says about itself.
type Model struct {
	// MetadataFile is the name of the tree's document.
	MetadataFile string
	// Name is the model's; "" where it has none.
	Name string
	// ID is the model's identity, as its producer gave it.
	ID string
	// Producer is the program that made the model.
	Producer Producer
	// Training is the state of its training.
	Training Training
	// Configuration is the path of the producer's configuration.
	Configuration string
	// BuildParameters is the path of build_parameters.yaml, "" where there is none.
	BuildParameters string
	// Checkpoints are the registered checkpoints' files, in the order of the
	// document. A nested tree's have no Path.
	Checkpoints []Checkpoint
	// Initialisation is the file that the training began with: none, or one.
	Initialisation []File
	// Nested is the model that the training began with, nil for none. Its paths
	// are relative to its own root, which is [InitialisationFolder].
	Nested *Model
	// Warnings are what is not as the format's own writer does it.
	Warnings []Violation

	sums []Sum
}

// InitialisationFolder is where a nested tree lies.
const InitialisationFolder = "data/initialisation"

// File is a file of the tree that has a recorded hash.
type File struct {
	Path string // slash-separated, from the tree's root
	Hash string // MD5, in lower-case hex
}

// Checkpoint is a registered checkpoint.
type Checkpoint struct {
	File
	// Reference is the checkpoint's name; an integer is written in decimal.
	Reference string

	identity string // the reference with its type
}

// Producer is the program that made a model.
type Producer struct {
	Name, Version string
}

// Training is the state of a training.
type Training struct {
	// Status is "pending", "running", "finished" or "failed".
	Status string
	// LatestEpoch is nil where none has come.
	LatestEpoch *int64
	// Latest is the reference of the latest checkpoint, "" for none.
	Latest string
}

// Violation is one broken rule.
type Violation struct {
	// Path is the file, and the place in it where it is a document:
	// "metadata.yaml: model.training.latest", "data/checkpoints/1.h5".
	Path string
	// Line is the line of the document, 0 where it is about none.
	Line int
	// Rule is the rule's stable id.
	Rule Rule
	// Msg says what was found and what was wanted.
	Msg string
}

// String returns "path: line n: message (rule)".
func (v Violation) String() string {
	line := ""
	if v.Line > 0 {
		line = fmt.Sprintf("line %d: ", v.Line)
	}
	return fmt.Sprintf("%s: %s%s (%s)", errtext.Quote(v.Path), line, v.Msg, v.Rule)
}

// Invalid is the error of a tree that breaks rules. It wraps [ErrInvalid].
type Invalid struct {
	// Violations are all that was found, in the order of the document, then of
	// the tree. There is at least one.
	Violations []Violation
}

// Error returns all violations on one line.
func (e *Invalid) Error() string {
	texts := make([]string, len(e.Violations))
	for i, v := range e.Violations {
		texts[i] = v.String()
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns [ErrInvalid].
func (e *Invalid) Unwrap() error { return ErrInvalid }

// Detect reports whether fsys is meant to be a tree of this format, be it a
// broken one: its root holds metadata.yaml, or Metadata.yaml, which says who
// produced the model and how it was trained (format.producer, model.training); or
// which has one of the mappings format and model, or can't be read, and lies
// beside a folder data/checkpoints or data/initialisation. Many programs write a
// metadata.yaml: two keys of common names are not enough.
func Detect(fsys fs.FS) (bool, error) {
	names, err := metadataNames(fsys)
	if err != nil || len(names) == 0 {
		return false, err
	}
	folders := isFolder(fsys, checkpointFolder) || isFolder(fsys, InitialisationFolder)
	raw, err := readDocument(fsys, names[0])
	if err != nil {
		return folders, nil //nolint:nilerr // Read says why
	}
	r := &report{file: names[0]}
	m := r.document(raw).mapping()
	broken := len(r.violations) > 0
	format, model := m["format"], m["model"]
	if format.maps() && format.mapping()["producer"].there() && model.maps() && model.mapping()["training"].there() {
		return true, nil
	}
	return folders && (broken || format.maps() || model.maps()), nil
}

// Headless reports whether fsys is laid out like a tree of this format and has no
// document: data/checkpoints beside data/initialisation or build parameters.
func Headless(fsys fs.FS) bool {
	names, err := metadataNames(fsys)
	if err != nil || len(names) > 0 || !isFolder(fsys, checkpointFolder) {
		return false
	}
	_, err = fs.Stat(fsys, buildParameters)
	return err == nil || isFolder(fsys, InitialisationFolder)
}

func isFolder(fsys fs.FS, name string) bool {
	info, err := fs.Stat(fsys, name)
	return err == nil && info.IsDir()
}

// Read reads the tree in fsys and checks every rule but hashes, for which [Model]
// Sums is there: of the files it reads metadata.yaml alone, and its like in
// nested trees. An error that is no [*Invalid] is fsys's own.
func Read(fsys fs.FS, opts Options) (*Model, error) {
	m, r, err := readTree(fsys, 0)
	if err != nil {
		return nil, err
	}
	if opts.Strict {
		r.violations, r.warnings = append(r.violations, r.warnings...), nil
	}
	if len(r.violations) > 0 {
		return nil, &Invalid{Violations: r.violations}
	}
	m.Warnings = r.warnings
	return m, nil
}
