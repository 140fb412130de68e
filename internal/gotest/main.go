// Gotest runs go test and prints what it prints, and besides it what go test
// keeps to itself when a package passes: every skipped test, and every line
// that begins with "NOT CHECKED:".
//
//	go run ./internal/gotest [-C DIR] [flags and packages of go test]
//
// It exits as go test does.
package main

import (
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
	if err := filter(os.Stdout, out); err != nil {
		return err
	}
	return cmd.Wait()
}
