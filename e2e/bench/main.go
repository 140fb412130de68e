// Bench measures transfers of the command beside what others do with the same
// bytes: curl, which only moves them; oras-go's file store, the way the oras
// command uses it; skopeo where it can. It runs the registry, makes the data,
// runs the programs in turn, and writes a table for each case into
// docs/benchmarks.md.
//
// Every figure is of a child process: wall time around it, the rest as the
// kernel counted it (see measure), and bytes and round trips as they passed the
// registry's sockets. What counts are ratios within one pair of runs, one right
// after the other; of the pairs the median is given, and the least and the most.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
)

// benchCase is a table of the document, by name.
type benchCase struct {
	name string
	run  func(r *rig) result
}

var cases = []benchCase{
	{"push", pushCold},
	{"again", pushAgain},
	{"changed", pushChanged},
	{"pull", pullLarge},
	{"older", pullOlder},
	{"slow", pullSlow},
	{"far-push", pushFar},
	{"far-pull", pullFar},
	{"small-http", func(r *rig) result { return r.small(r.registry.far) }},
	{"small-tls", func(r *rig) result { return r.small(r.registry.farTLS) }},
	{"kill-push", pushKilled},
	{"kill-pull", pullKilled},
	{"memory", memory},
	{"tensor", oneTensor},
	{"signed", signed},
	{"many-push", pushMany},
	{"many-pull", pullMany},
}

// work is the folder below which everything is, until the program's end.
var work string

func main() {
	only := flag.String("only", "",
		"run only the cases in `LIST`, separated by commas; the document's marks have their names")
	size := flag.Int64("size", 2<<30, "push and pull a model of `BYTES`; at most eight times as much disk is used")
	rounds := flag.Int("pairs", 7, "run each program `N` times, fewer where a case takes long")
	doc := flag.String("doc", "../docs/benchmarks.md", "replace the tables in `FILE`")
	flag.Parse()
	names := strings.Split(*only, ",")
	for _, name := range names {
		if *only != "" && !slices.ContainsFunc(cases, func(c benchCase) bool { return c.name == name }) {
			check(fmt.Errorf("-only: there is no case %q", name))
		}
	}
	var err error
	work, err = os.MkdirTemp("", "carton-oci-bench")
	check(err)
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	go func() { check(fmt.Errorf("%s", <-interrupted)) }()
	r := newRig(work, *size, *rounds)
	rewrite(*doc, "machine", r.machine())
	for _, c := range cases {
		if *only == "" || slices.Contains(names, c.name) {
			res := c.run(r)
			fmt.Fprintln(os.Stderr, res)
			rewrite(*doc, c.name, res.String())
		}
	}
	check(os.RemoveAll(work))
}

// check ends the program unless err is nil: of a benchmark that could not do one
// thing, no figure is believed.
func check(err error) {
	if err != nil {
		_ = os.RemoveAll(work)
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
