package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"time"
)

// figures are what one run of one program took.
type figures struct {
	Wall    float64 // seconds
	CPU     float64 // seconds, user and system, of the process and its children
	Peak    int64   // bytes of memory: ru_maxrss, which is never below the benchmark's own
	In      int64   // bytes that reached the server's sockets
	Out     int64   // bytes that left them
	Read    int64   // bytes of all read calls, from files and sockets: rchar of /proc/PID/io
	Written int64   // bytes of pages made dirty in files: write_bytes of /proc/PID/io
	Sync    float64 // seconds in which a thread was inside fsync: sampled
	After   float64 // seconds that an fsync of the output takes after the program's end
}

// program is a command line to measure.
type program struct {
	path string
	args []string
	dir  string
	env  []string
}

func (p program) command(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.path, p.args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), p.env...)
	return cmd
}

// measure runs a program and says what it took, but for what the server knows.
func measure(ctx context.Context, p program) (figures, error) {
	cmd := p.command(ctx)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	debug.FreeOSMemory() // a child's peak is never below its parent's
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return figures{}, err
	}
	sampler := startSampler(cmd.Process.Pid)
	// The process stays a zombie until Wait, and its account can be read.
	awaitZombie(cmd.Process.Pid)
	f := account(cmd.Process.Pid)
	err := cmd.Wait()
	f.Wall, f.Sync = time.Since(start).Seconds(), sampler.end()
	if err != nil {
		return f, fmt.Errorf("%s %s: %w\n%s", p.path, strings.Join(p.args, " "), err, &stderr)
	}
	f.CPU = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	f.Peak = peak(cmd.ProcessState)
	return f, nil
}

// killedAt runs a program until reached returns, and kills it.
func killedAt(ctx context.Context, p program, reached func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := p.command(ctx)
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait(); cancel() }()
	if err := reached(ctx); err != nil {
		return fmt.Errorf("%s %s ended before it was killed: %w", p.path, strings.Join(p.args, " "), err)
	}
	if err := cmd.Process.Kill(); err != nil {
		return err
	}
	<-done //nolint:errcheck // it was killed
	return nil
}
