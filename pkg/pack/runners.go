package pack

import (
	"strings"

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
		FilesFrom: []hint.Hint{hint.New("carton.lock lists the Python packages that the model needs; Carton's own packer makes it of requirements.txt (https://carton.run/docs). "+
			"Only to store files, %s noop needs none", hint.Runner)},
		Opts: []string{"entrypoint_package", "entrypoint_fn"},
	},
	{
		Name: "wasm", Compat: 1, Framework: "interface, =0.0.1",
		Expects: "model.wasm, a component", Needs: []string{"model.wasm"},
	},
	{
		Name: "rust-bert", Compat: 1, Framework: "rust-bert, =0.21.0",
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
