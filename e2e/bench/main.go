// Bench measures transfers of the command beside what others do with the same
// bytes: curl, which only moves them; oras-go's file store, the way the oras
// command uses it; skopeo where it can. It starts the servers, makes the data,
// runs the programs in turn, and writes one table and one drawing into docs.
//
// Every figure is of a child process: wall time around it, the rest as the
// kernel counted it (see measure.go). What counts are ratios within one pair of
// runs, one right after the other; of the pairs the median is given, and the
// least and the most.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// options are what the command line says.
type options struct {
	root     string        // of the repository
	work     string        // where data and servers' storage are
	docs     string        // where the table and the drawing go
	results  string        // where figures are kept, so that cases can be run one by one
	only     []string      // the cases to run; none is all
	size     int64         // bytes of the model that is pushed and pulled
	pairs    int           // how often each program runs in a case
	patience time.Duration // after which a case stops at three pairs
	disk     int64         // most bytes on disk at once
}

func main() {
	var o options
	only := flag.String("only", "", "run only the cases in `LIST`, separated by commas; none draws what was measured before")
	flag.StringVar(&o.root, "root", "..", "the repository is in `DIR`")
	flag.StringVar(&o.work, "work", "", "keep data below `DIR` (a temporary folder)")
	flag.StringVar(&o.docs, "docs", "../docs", "write benchmarks.md and benchmarks.svg into `DIR`")
	flag.StringVar(&o.results, "results", "../bin/bench.json", "keep figures in `FILE`")
	flag.Int64Var(&o.size, "size", 2<<30, "push and pull a model of `BYTES`")
	flag.IntVar(&o.pairs, "pairs", 7, "run each program `N` times")
	flag.DurationVar(&o.patience, "patience", 150*time.Second, "stop a case at three pairs once it has taken `DURATION`")
	flag.Int64Var(&o.disk, "disk", 16<<30, "use at most so many `BYTES` of disk: 20 GiB are pulled from 28 GiB on")
	flag.Parse()
	o.only = strings.FieldsFunc(*only, func(r rune) bool { return r == ',' })
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	book, err := readBook(o.results)
	if err != nil {
		return err
	}
	todo, err := chosen(o.only)
	if err != nil {
		return err
	}
	if len(todo) > 0 {
		r, err := newRig(ctx, o)
		if err != nil {
			return err
		}
		defer r.close()
		book.Machine = machine(ctx, r)
		for _, c := range todo {
			if err := r.measure(ctx, c, book); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			if err := book.write(o.results); err != nil {
				return err
			}
		}
	}
	if err := os.WriteFile(filepath.Join(o.docs, "benchmarks.svg"), drawing(book), 0o644); err != nil {
		return err
	}
	return rewrite(filepath.Join(o.docs, "benchmarks.md"), table(book))
}

// chosen returns the cases by their names, in the order of the table.
func chosen(names []string) ([]benchCase, error) {
	if len(names) == 0 {
		return cases, nil
	}
	var todo []benchCase
	for _, c := range cases {
		if slices.Contains(names, c.name) {
			todo = append(todo, c)
		}
	}
	if len(todo) == len(names) || slices.Equal(names, []string{"none"}) {
		return todo, nil
	}
	var known []string
	for _, c := range cases {
		known = append(known, c.name)
	}
	return nil, fmt.Errorf("-only: got %s, want some of %s, or none", strings.Join(names, ","), strings.Join(known, ","))
}
