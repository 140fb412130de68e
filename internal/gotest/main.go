// Gotest runs go test and prints what it prints, and besides it what go test
// keeps to itself: every skipped test of a package that passes, every line that
// begins with "NOT CHECKED:", and, where nothing else is printed for a while, what
// is running.
//
//	go run ./internal/gotest [-cases FILE] [-C DIR] [flags and packages of go test] [-- [-C DIR] …]
//
// What stands behind "--" is another run of go test, in another module.
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
	var failed error
	for more := true; more; {
		var this []string
		this, args, more = cut(args)
		failed = cmp.Or(failed, goTest(res, this))
	}
	held := judge(os.Stdout, cases, res)
	res.sayForeign()
	return cmp.Or(failed, held)
}

// cut returns the arguments before and behind the first "--".
func cut(args []string) (before, behind []string, found bool) {
	if i := slices.Index(args, "--"); i >= 0 {
		return args[:i], args[i+1:], true
	}
	return args, nil, false
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
