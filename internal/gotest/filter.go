package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
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

// results holds the output of tests whose result is not known yet.
type results struct {
	w       io.Writer
	pending map[string]map[string]*strings.Builder // by package and test
	failed  map[string]*strings.Builder            // by package

	outcomes map[string]map[string]string // "pass", "skip", "fail", by package's folder and test
}

// filter reads the output of go test -json and prints to w what go test prints
// without it, skipped tests, and lines that begin with "NOT CHECKED:" or "CHECKED:". It
// returns how the tests came out.
func filter(w io.Writer, r io.Reader) (*results, error) {
	res := &results{
		w:       w,
		pending: map[string]map[string]*strings.Builder{},
		failed:  map[string]*strings.Builder{},

		outcomes: map[string]map[string]string{},
	}
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) == nil && e.Action != "" {
				res.take(e)
			} else {
				fmt.Fprintf(w, "%s", line)
			}
		}
		switch {
		case err == io.EOF:
			return res, nil
		case err != nil:
			return nil, err
		}
	}
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
	if i := strings.Index(e.Output, "NOT CHECKED:"); i >= 0 {
		fmt.Fprintln(r.w, strings.TrimRight(e.Output[i:], "\n"))
	} else if i := strings.Index(e.Output, "CHECKED:"); i >= 0 {
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
	r.outcomes[folder][e.Test] = e.Action
	text := r.pending[e.Package][e.Test]
	delete(r.pending[e.Package], e.Test)
	if text == nil {
		return
	}
	switch e.Action {
	case "skip":
		fmt.Fprint(r.w, text)
	case "fail":
		if r.failed[e.Package] == nil {
			r.failed[e.Package] = &strings.Builder{}
		}
		r.failed[e.Package].WriteString(text.String())
	}
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
