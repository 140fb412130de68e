package pack

import (
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/filekind"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// Runner is a runner of the reference implementation.
type Runner struct {
	Name string
	// Compat is the version of what it expects in model/.
	Compat uint64
	// Framework is what required_framework_version is about.
	Framework string
	// Expects is what it looks for in model/, in a few words.
	Expects string
	// Needs are the paths below model/ that it can't do without.
	Needs []string
	// FilesFrom says where files come from that nobody writes by hand.
	FilesFrom []hint.Hint
	// Opts are the options that it can't do without.
	Opts []string
}

// Runners are the runners that the reference implementation has, and what each
// expects: https://github.com/VivekPanyam/carton, source/carton-runner-*. All of
// them have been at compat version 1 since their first release.
var Runners = []Runner{
	{
		Name: "torchscript", Compat: 1, Framework: "libtorch, =2.0.1",
		Expects: "model.pt, saved by torch.jit", Needs: []string{"model.pt"},
	},
	{
		Name: "python", Compat: 1, Framework: "Python, =3.11",
		Expects: ".carton/carton.lock, the entry package", Needs: []string{".carton/carton.lock"},
		FilesFrom: []hint.Hint{
			hint.New("carton.lock lists the Python packages that the model needs; Carton's own packer makes it of "+
				"requirements.txt (https://carton.run/docs). "+
				"Only to store files, %s noop needs none", hint.Runner),
		},
		Opts: []string{"entrypoint_package", "entrypoint_fn"},
	},
	{
		Name: "wasm", Compat: 1, Framework: "interface, =0.0.1",
		Expects: "model.wasm, a component", Needs: []string{"model.wasm"},
	},
	{
		Name: rustBertRunner, Compat: 1, Framework: "rust-bert, =0.21.0",
		Expects: "config.json, and what it names", Needs: []string{"config.json"},
	},
	{
		Name: noopRunner, Compat: 1, Framework: "none, *",
		Expects: "anything; it runs nothing: storage only",
	},
}

const (
	noopRunner        = "noop"
	pythonRunner      = "python"
	torchscriptRunner = "torchscript"
	wasmRunner        = "wasm"
	rustBertRunner    = "rust-bert"
)

// knownRunner returns the runner with a name, nil for none.
func knownRunner(name string) *Runner {
	for i := range Runners {
		if Runners[i].Name == name {
			return &Runners[i]
		}
	}
	return nil
}

// FrameworkOf returns the framework version of a runner that has none to choose,
// "" of any other.
func FrameworkOf(runner string) string {
	if runner == noopRunner {
		return "*"
	}
	return ""
}

// chooseRunner says what loads the model where the files tell: a TorchScript archive
// and a WebAssembly module under the names that their runners look for, the lock file
// of the python runner. Of any other model nobody asked that it be run, only that it
// be kept: its runner is noop, which the format has for that, unless something is
// given that only another runner needs, or no file looks like a model.
func (p *packer) chooseRunner() error {
	r := &p.opts.Runner
	if r.Name != "" || p.keepsInfo() {
		return nil
	}
	for _, known := range Runners {
		for _, need := range known.Needs {
			f := p.find(modelFolder + need)
			if f == nil || known.Name == rustBertRunner { // its config.json may be anybody's
				continue
			}
			is, err := p.runs(f, known.Name)
			if err != nil {
				return err
			}
			if is {
				p.take(&r.Name, "runner.runner_name", known.Name, need+", which it looks for")
				return nil
			}
		}
	}
	isWeight := func(f *file) bool { return filekind.FormatOf(path.Base(f.path)) != "" }
	if p.needsRunner() || !slices.ContainsFunc(p.files, isWeight) {
		return nil
	}
	p.take(&r.Name, "runner.runner_name", noopRunner, "no file says what loads it: stored only")
	return nil
}

// runs reports whether a file is what a runner loads, and not only called so.
func (p *packer) runs(f *file, runner string) (bool, error) {
	f = p.final(f)
	if runner == pythonRunner {
		return true, nil
	}
	r, err := f.open()
	if err != nil {
		return false, err
	}
	defer r.Close()
	if runner == torchscriptRunner {
		return isTorchScript(r, f.size), nil
	}
	head := make([]byte, len(wasmMagic))
	_, err = r.ReadAt(head, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return string(head) == wasmMagic, err
}

// needsRunner reports whether something is given that is for a runner.
func (p *packer) needsRunner() bool {
	r := &p.opts.Runner
	return r.RequiredFrameworkVersion != "" || r.CompatVersion != nil || len(r.Opts) > 0 ||
		len(p.opts.AddSelfTests) > 0 || len(p.opts.AddExamples) > 0
}

// likeRunner returns the runner that a name is most likely meant for: it has the
// same letters, in whatever case and with whatever between them.
func likeRunner(name string) string {
	letters := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r < 'a' || r > 'z' {
				return -1
			}
			return r
		}, strings.ToLower(s))
	}
	for _, r := range Runners {
		if letters(r.Name) == letters(name) {
			return r.Name
		}
	}
	return ""
}
