package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// modulePath begins the path of every package here.
const modulePath = "github.com/carton-oci/carton-oci"

// event is one line of go test -json; see go doc test2json.
type event struct {
	Action  string
	Package string
	Test    string // "" where it is about the package
	Output  string
}

// What tests print where something that they need is not here: see package
// testenv.
const (
	notChecked  = "NOT CHECKED:"
	checked     = "CHECKED:"
	foreignFile = "FOREIGN FILE:"
)

// results holds the output of tests whose result is not known yet, and how the
// others came out.
type results struct {
	mu      sync.Mutex // of all below, while runs are made
	w       io.Writer
	wrote   time.Time
	running *running
	pending map[string]map[string]*strings.Builder // by package and test
	failed  map[string]*strings.Builder            // by package

	outcomes map[string]map[string]string // "pass", "skip", "fail", by package's folder and test
	foreign  int                          // tests whose foreign files are missing
}

func newResults(w io.Writer) *results {
	r := &results{
		running:  newRunning(),
		pending:  map[string]map[string]*strings.Builder{},
		failed:   map[string]*strings.Builder{},
		outcomes: map[string]map[string]string{},
		wrote:    time.Now(),
	}
	r.w = noticed{w, &r.wrote}
	return r
}

// noticed notes when something was written.
type noticed struct {
	w    io.Writer
	when *time.Time
}

func (n noticed) Write(b []byte) (int, error) {
	*n.when = time.Now()
	return n.w.Write(b)
}

// filter reads the output of go test -json and prints what go test prints without
// it, skipped tests, and lines that begin with "NOT CHECKED:" or "CHECKED:".
func (r *results) filter(in io.Reader) error {
	return eachLine(in, func(line []byte) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.line(line)
	})
}

// sayRunning prints what is running, whenever nothing else was printed for a while.
func (r *results) sayRunning() (stop func()) {
	tick, stopped, ended := time.NewTicker(quietFor/4), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stopped:
				return
			case now := <-tick.C:
				r.mu.Lock()
				if now.Sub(r.wrote) >= quietFor {
					fmt.Fprint(r.w, r.running.String(now))
				}
				r.mu.Unlock()
			}
		}
	}()
	return func() {
		tick.Stop()
		close(stopped)
		<-ended
	}
}

// eachLine calls f with every line of r, its end included.
func eachLine(r io.Reader, f func([]byte)) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			f(line)
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

func (r *results) line(line []byte) {
	var e event
	if json.Unmarshal(line, &e) == nil && e.Action != "" {
		r.running.take(e, time.Now())
		r.take(e)
	} else {
		fmt.Fprintf(r.w, "%s", line)
	}
}

// sayForeign prints how many tests had no foreign files to read.
func (r *results) sayForeign() {
	what := "tests read"
	switch r.foreign {
	case 0:
		return
	case 1:
		what = "test reads"
	}
	fmt.Fprintf(r.w, "%d %s files of other programs, which are not in the repository and not here: "+
		"CARTON_OCI_FIXTURES names their folder\n", r.foreign, what)
}

func (r *results) take(e event) {
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.w, e.Output)
	case "output":
		r.output(e)
	case "pass", "skip", "fail":
		if e.Test == "" {
			r.packageDone(e)
		} else {
			r.testDone(e)
		}
	}
}

func (r *results) output(e event) {
	// The line may follow something that did not end its own.
	if strings.Contains(e.Output, foreignFile) {
		r.foreign++
	} else if i := strings.Index(e.Output, notChecked); i >= 0 {
		fmt.Fprintln(r.w, strings.TrimRight(e.Output[i:], "\n"))
	} else if i := strings.Index(e.Output, checked); i >= 0 {
		fmt.Fprintln(r.w, strings.TrimRight(e.Output[i:], "\n"))
	}
	if strings.HasPrefix(e.Output, "=== ") {
		return // RUN, PAUSE, CONT, NAME
	}
	tests := r.pending[e.Package]
	if tests == nil {
		tests = map[string]*strings.Builder{}
		r.pending[e.Package] = tests
	}
	b := tests[e.Test]
	if b == nil {
		b = &strings.Builder{}
		tests[e.Test] = b
	}
	b.WriteString(e.Output)
}

func (r *results) testDone(e event) {
	folder := cmp.Or(strings.TrimPrefix(strings.TrimPrefix(e.Package, modulePath), "/"), ".")
	if r.outcomes[folder] == nil {
		r.outcomes[folder] = map[string]string{}
	}
	before := r.outcomes[folder][e.Test]
	r.outcomes[folder][e.Test] = worst(before, e.Action)
	text := r.pending[e.Package][e.Test]
	delete(r.pending[e.Package], e.Test)
	if text == nil {
		return
	}
	switch e.Action {
	case "skip":
		if before != "" {
			return // an earlier run has had it, or has said why not
		}
		if said := text.String(); !strings.Contains(said, notChecked) && !strings.Contains(said, foreignFile) {
			fmt.Fprint(r.w, said)
		}
	case "fail":
		if r.failed[e.Package] == nil {
			r.failed[e.Package] = &strings.Builder{}
		}
		r.failed[e.Package].WriteString(text.String())
	}
}

// worst returns what becomes of a test that came out in two ways: a run that leaves
// it out takes nothing from one in which it passed.
func worst(a, b string) string {
	for _, outcome := range []string{"fail", "pass"} {
		if a == outcome || b == outcome {
			return outcome
		}
	}
	return b
}

// packageDone prints a package's closing line; before it, where it failed,
// everything that failed tests, tests without an end, and the package printed.
func (r *results) packageDone(e event) {
	tests := r.pending[e.Package]
	own := ""
	if b := tests[""]; b != nil {
		own = b.String()
	}
	if e.Action == "fail" {
		if failed := r.failed[e.Package]; failed != nil {
			fmt.Fprint(r.w, failed)
		}
		for name, text := range tests {
			if name != "" {
				fmt.Fprint(r.w, text)
			}
		}
		fmt.Fprint(r.w, own)
	} else {
		fmt.Fprint(r.w, closing(own))
	}
	delete(r.pending, e.Package)
	delete(r.failed, e.Package)
}

// closing returns the lines by which go test closes a package: "ok …" or
// "? … [no test files]", and warnings of the go command before them.
func closing(output string) string {
	var kept strings.Builder
	for line := range strings.Lines(output) {
		if strings.HasPrefix(line, "ok  \t") || strings.HasPrefix(line, "?   \t") ||
			strings.Contains(line, "[no test files]") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}
