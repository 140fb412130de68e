package pack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/modelfile/pmf"
)

// Carton is a carton of loose files, and what was found out on the way. It is
// the folder's as it was when it was opened.
type Carton struct {
	carton.Source
	// Info is its carton.toml, typed.
	Info *carton.Info
	// Thin are the links that a thin carton of it has: give them to
	// carton.AssembleOptions. Nil where none were asked for.
	Thin *carton.Links
	// Filled is what the files told, in the order of carton.toml.
	Filled []Fact
	// Warnings are what looks wrong and was packed all the same.
	Warnings []string
	// Hints say what can be done about warnings that need more words.
	Hints []hint.Hint
	// LeftOut are the files and folders that are no part of it; a folder that is
	// left out because it is empty ends in "/".
	LeftOut []string
	// Snapshot is the commit of a hub's repository that was packed, and Repository its
	// name, as in "org/name"; "" where the folder is none of a hub's.
	Snapshot, Repository string
	// PMF is the tree that was packed, nil for none.
	PMF *pmf.Model
}

// Fact is a value of carton.toml that nobody gave.
type Fact struct {
	// Field is its key, as in "runner.runner_name".
	Field string `json:"field"`
	Value string `json:"value"`
	// From says what told it, as in "torch_version of m.pt2".
	From string `json:"from"`
}

// packer is a carton that is being made.
type packer struct {
	opts      Options
	roots     []*os.Root
	opened    map[string]*os.Root // roots, by the folder that was opened
	reordered int64               // bytes of .npy files that are in memory
	paths     carton.Paths        // of all members
	files     []*file
	byPath    map[string]*file // of files, as many as there were
	cutFrom   []*file          // what shards are made of, where something says its sha256
	given     []byte           // a carton.toml that is kept, nil for none
	loaded    *carton.Info
	said      []said // by the headers of model files
	out       *Carton
	pmf       *pmf.Model
	listed    *carton.TensorIndex // of TensorData, nil for none
}

// Open makes a carton of the files at paths: one folder, or one file or more.
// Their content is read once, to hash it.
//
// A path that is a carton already is [ErrCarton]. What is needed and was not said
// is a [*MissingError], and options that contradict each other are [ErrOptions].
// A tree in the Plums Model Format that breaks its rules is an error wrapping a
// [*pmf.Invalid] and carton.ErrFormat, or carton.ErrChecksum where nothing but
// recorded checksums is wrong. Anything else that can't be in a carton is a
// [*carton.Error].
func Open(ctx context.Context, paths []string, opts Options) (*Carton, error) {
	return pack(opts, func(p *packer) error { return p.run(ctx, func() error { return p.collect(paths) }) })
}

// pack makes a carton, or closes what was opened for it.
func pack(opts Options, run func(p *packer) error) (*Carton, error) {
	p := &packer{opts: opts, out: &Carton{}}
	if err := run(p); err != nil {
		for _, r := range p.roots {
			r.Close()
		}
		return nil, err
	}
	return p.out, nil
}

func (p *packer) run(ctx context.Context, collect func() error) error {
	if p.opts.InfoFile != "" {
		if what := p.opts.describes(); what != "" {
			return optionsf("a carton.toml is given, and %s beside it: give one of them", what)
		}
	}
	if err := carton.CheckPatterns(slices.Concat(p.opts.Include, p.opts.Exclude)...); err != nil {
		return optionsf("%v", err)
	}
	for _, step := range []func() error{
		collect, p.addFolders, p.shard, p.describe,
		func() error { return p.hashAll(ctx) }, p.checkSums, p.checkNameHashes,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	src, err := newSource(p.files, p.roots)
	if err != nil {
		return err
	}
	p.out.Source, p.out.PMF = src, p.pmf
	if err := p.check(ctx); err != nil {
		return err
	}
	members, err := src.Members(ctx)
	if err != nil {
		return err
	}
	if p.out.Thin, err = p.links(members); err != nil {
		return err
	}
	if p.opts.Strict && len(p.out.Warnings) > 0 {
		return &carton.Error{Kind: carton.ErrFormat, Msg: strings.Join(p.out.Warnings, "; ")}
	}
	return nil
}

// add adds a generated file.
func (p *packer) add(name string, text []byte) error {
	if err := p.paths.Add(name); err != nil {
		return err
	}
	p.files = append(p.files, &file{path: name, text: text, size: int64(len(text))})
	return nil
}

func (p *packer) warnf(format string, args ...any) {
	p.out.Warnings = append(p.out.Warnings, fmt.Sprintf(format, args...))
}

func (p *packer) fill(field, value, from string) {
	p.out.Filled = append(p.out.Filled, Fact{Field: field, Value: value, From: from})
}

// take takes a text of carton.toml from what a file tells, where nobody gave one.
func (p *packer) take(to *string, field, value, from string) {
	if *to == "" && value != "" && !p.keepsInfo() {
		*to = value
		p.fill(field, value, from)
	}
}

// broken refuses what is broken, and warns of it where AllowInvalid packs it.
func (p *packer) broken(path string, kind, cause error) error {
	err := &carton.Error{Path: path, Kind: kind, Msg: cause.Error()}
	if p.opts.AllowInvalid {
		p.warnf("%v", err)
		return nil
	}
	return hint.Add(hint.With(err, "%s packs it all the same", hint.PackInvalid), hint.Of(cause)...)
}

// describe makes carton.toml and tensor_data of what was given and of what the
// files say.
func (p *packer) describe() error {
	for _, step := range []func() error{p.chooseRunner, p.readFiles, p.readFrontMatter, p.fillFromHeaders, p.tensors} {
		if err := step(); err != nil {
			return err
		}
	}
	raw := p.given
	if raw == nil {
		var err error
		if raw, err = p.info(); err != nil {
			return err
		}
	}
	var err error
	if p.loaded, err = carton.ParseInfo(raw); err != nil {
		if p.given == nil {
			return err // the options' fault: a carton that nobody can read is of no use
		}
		var e *carton.Error
		if !errors.As(err, &e) {
			return err
		}
		if err := p.broken(e.Path, e.Kind, errors.New(e.Msg)); err != nil {
			return err
		}
		p.loaded = carton.ParseInfoLoosely(raw)
	}
	p.out.Info = p.loaded
	p.expectations()
	if p.find(carton.InfoName) != nil {
		return nil // a folder that is laid out as a carton has it
	}
	return p.add(carton.InfoName, raw)
}

// find returns the file with that path in the carton, nil for none.
func (p *packer) find(path string) *file {
	if len(p.byPath) != len(p.files) {
		p.byPath = map[string]*file{}
		for _, f := range p.files {
			p.byPath[f.path] = f
		}
	}
	return p.byPath[path]
}

// final returns the regular file where a file ends; itself where it ends
// nowhere, which carton.ResolveSymlinks refuses.
func (p *packer) final(f *file) *file {
	end := f
	for range carton.MaxSymlinks {
		if end == nil {
			return f
		}
		if end.target == "" {
			return end
		}
		end = p.find(path.Join(path.Dir(end.path), end.target))
	}
	return f
}

// expectations warns, once, of what the runner will miss, and of a name that is
// most likely another's.
func (p *packer) expectations() {
	name := p.loaded.Runner.Name
	r := knownRunner(name)
	if r == nil {
		if like := likeRunner(name); like != "" {
			p.warnf("the runner %s is not known: the name of the one that is like it is written %s",
				errtext.Quote(name), like)
		}
		return
	}
	var missing []string
	for _, need := range r.Needs {
		if p.find(modelFolder+need) == nil {
			missing = append(missing, modelFolder+need)
		}
	}
	files := len(missing)
	for _, opt := range r.Opts {
		if _, ok := p.loaded.Runner.Opts[opt]; !ok {
			missing = append(missing, "the option "+opt)
		}
	}
	switch len(missing) {
	case 0:
		return
	case 1:
		p.warnf("the runner %s expects %s, which is not there", r.Name, missing[0])
	default:
		last := len(missing) - 1
		p.warnf("the runner %s expects %s and %s, which are not there",
			r.Name, strings.Join(missing[:last], ", "), missing[last])
	}
	if files > 0 {
		p.out.Hints = append(p.out.Hints, r.FilesFrom...)
	}
	if len(missing) > files {
		var opts []string
		var args []any
		for _, opt := range r.Opts {
			opts, args = append(opts, "%s %s=TEXT"), append(args, hint.RunnerOpts, opt)
		}
		p.out.Hints = append(p.out.Hints, hint.New(strings.Join(opts, " ")+" sets the options", args...))
	}
}

// check refuses a carton that would be refused elsewhere.
func (p *packer) check(ctx context.Context) error {
	findings, err := carton.Check(ctx, p.out.Source)
	if err != nil {
		return err
	}
	for _, f := range findings {
		if f.Severity == carton.SeverityWarning {
			p.warnf("%v", f.Err)
			continue
		}
		if err := p.broken(f.Path, f.Err.Kind, errors.New(f.Err.Msg)); err != nil {
			return err
		}
	}
	return nil
}
