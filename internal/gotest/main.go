// Gotest runs go test and prints what it prints, and besides it what go test
// keeps to itself: every skipped test of a package that passes, every line that
// begins with "NOT CHECKED:", and, where nothing else is printed for a while, what
// is running.
//
//	go run ./internal/gotest [-cases FILE] [-C DIR] [flags and packages of go test] [-- [-C DIR] …] [--beside [-C DIR] …]
//
// What stands behind "--" is another run of go test, made after the one before it.
// Behind "--beside" begin runs that are made at the same time as those before it, of
// other packages: one half waits where the other computes.
//
// With -cases it holds a list of hostile cases against what was run: every case
// whose package was tested must have had its test, and it must have passed, or
// have said that it checks nothing here. Where several runs have one test, one that
// left it out takes nothing from one in which it passed.
//
// Tests that only read files of other programs, which are not in the repository
// (testenv.Foreign), are counted where the files are missing: one line at the end
// says how many, and which variable names their folder.
//
// It exits as the first go test that failed does, and with 1 where a case does not
// hold.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
)

func main() {
	err := run(os.Args[1:])
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		os.Exit(exit.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, "gotest:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	var cases []hostileCase
	if len(args) >= 2 && args[0] == "-cases" {
		var err error
		if cases, err = readCases(args[1]); err != nil {
			return err
		}
		args = args[2:]
	}
	res := newResults(os.Stdout)
	sides := split(args, "--beside")
	failed := make([]error, len(sides))
	stop := res.sayRunning()
	var wg sync.WaitGroup
	for i, side := range sides {
		wg.Go(func() {
			for _, args := range split(side, "--") {
				failed[i] = cmp.Or(failed[i], goTest(res, args))
			}
		})
	}
	wg.Wait()
	stop()
	held := judge(os.Stdout, cases, res)
	res.sayForeign()
	return cmp.Or(cmp.Or(failed...), held)
}

// split cuts arguments at every separator.
func split(args []string, separator string) [][]string {
	var parts [][]string
	for {
		i := slices.Index(args, separator)
		if i < 0 {
			return append(parts, args)
		}
		parts, args = append(parts, args[:i]), args[i+1:]
	}
}

// goTest runs go test once, in the folder of -C where it is given first.
func goTest(res *results, args []string) error {
	dir := ""
	if len(args) >= 2 && args[0] == "-C" {
		dir, args = args[1], args[2:]
	}
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := res.filter(out); err != nil {
		return err
	}
	return cmd.Wait()
}
