// Gotest runs go test and prints what it prints, and besides it what go test
// keeps to itself when a package passes: every skipped test, and every line
// that begins with "NOT CHECKED:".
//
//	go run ./internal/gotest [-cases FILE] [-C DIR] [flags and packages of go test]
//
// With -cases it holds a list of hostile cases against what was run: every case
// whose package was tested must have had its test, and it must have passed, or
// have said that it checks nothing here.
//
// It exits as go test does, and with 1 where a case does not hold.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
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
	dir, list := "", ""
	for len(args) >= 2 && (args[0] == "-C" || args[0] == "-cases") {
		if args[0] == "-C" {
			dir = args[1]
		} else {
			list = args[1]
		}
		args = args[2:]
	}
	var cases []hostileCase
	if list != "" {
		var err error
		if cases, err = readCases(list); err != nil {
			return err
		}
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
	res, err := filter(os.Stdout, out)
	if err != nil {
		return err
	}
	held := judge(os.Stdout, cases, res)
	return cmp.Or(cmd.Wait(), held)
}
