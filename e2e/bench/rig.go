package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// rig is everything that a case needs to run programs.
type rig struct {
	dir      string // below which everything is
	size     int64  // of the model that most cases push and pull
	rounds   int
	registry *registry
	models   map[string]model
}

func newRig(dir string, size int64, rounds int) *rig {
	r := &rig{dir: dir, size: size, rounds: rounds, models: map[string]model{}}
	// The command under test, as a user would build it, and what it is beside.
	r.output(program{"go", "build", "-C", "..", "-trimpath", "-o", r.empty("bin"), "./cmd/carton-oci"})
	r.output(program{"go", "build", "-trimpath", "-o", r.path("bin"), "./bench/oras", "./bench/measure"})
	r.registry = newRegistry(r.empty("registry"))
	// A home for programs alone, in which they trust the registry.
	ca := r.path("registry", "ca.pem")
	for name, value := range map[string]string{
		"CARTON_OCI_CACHE": r.path("cache"), "HOME": r.path("home"), "SSL_CERT_FILE": ca, "CURL_CA_BUNDLE": ca,
	} {
		check(os.Setenv(name, value))
	}
	return r
}

// path returns a path below the rig's folder.
func (r *rig) path(elem ...string) string { return filepath.Join(append([]string{r.dir}, elem...)...) }

// empty makes a folder that holds nothing, and returns its path.
func (r *rig) empty(name string) string {
	check(os.RemoveAll(r.path(name)))
	check(os.MkdirAll(r.path(name), 0o755))
	return r.path(name)
}

// drop removes models that no other case needs.
func (r *rig) drop(names ...string) {
	for _, name := range names {
		check(os.RemoveAll(r.path(name)))
		delete(r.models, name)
	}
}

// contender is a program in a case.
type contender struct {
	name  string
	start func() program // makes everything ready for a run, and says what to run
}

// after returns a contender that runs a program when ready has been called.
func after(ready func(), name string, p program) contender {
	return contender{name, func() program { ready(); return p }}
}

// What is made ready.

// fresh: an empty registry, and the command has never been here.
func (r *rig) fresh() { r.forget(); r.registry.fresh() }

// forget: the command has never been here.
func (r *rig) forget() { r.empty("cache") }

// cleared: an empty folder for what is pulled.
func (r *rig) cleared() { r.empty("out") }

// compare runs every contender once in each round, in turn; none is always
// first. Programs of others that are not installed are left out.
func (r *rig) compare(title string, contenders ...contender) result {
	contenders = slices.DeleteFunc(contenders, func(c contender) bool {
		_, err := exec.LookPath(c.name)
		return (c.name == "curl" || c.name == "skopeo") && err != nil
	})
	res := result{title: title}
	for _, c := range contenders {
		res.programs = append(res.programs, measured{name: c.name})
	}
	enough := time.Now().Add(150 * time.Second) // for a case of more than three rounds
	for round := range r.rounds {
		if round >= 3 && time.Now().After(enough) {
			break
		}
		for i := range contenders {
			i = (round + i) % len(contenders)
			res.programs[i].runs = append(res.programs[i].runs, r.measure(contenders[i].start()))
		}
	}
	r.drop("out")
	return res
}

// measure runs a program and says what it took.
func (r *rig) measure(p program) figures {
	var f figures
	r.registry.reset()
	out := r.output(append(program{r.path("bin", "measure"), r.path("out")}, p...))
	check(json.Unmarshal([]byte(out), &f))
	f["on disk"] = f["wall"] + f["fsync after"]
	f["sent"], f["received"] = float64(r.registry.in.Load()), float64(r.registry.out.Load())
	f["round trips"] = float64(r.registry.trips.Load().count())
	return f
}

// output runs a program outside of the measurement, and returns what it printed.
func (r *rig) output(p program) string {
	cmd, stderr := exec.Command(p[0], p[1:]...), &strings.Builder{}
	cmd.Stderr = stderr
	out, err := cmd.Output()
	if err != nil {
		check(fmt.Errorf("%s: %w\n%s", strings.Join(p, " "), err, stderr))
	}
	return string(out)
}
