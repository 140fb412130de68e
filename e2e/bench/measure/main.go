//go:build linux

// Measure runs a program and prints what it took as JSON:
//
//	measure OUTPUT PROGRAM ARG...
//
// It is a process of its own because the kernel never counts a child's peak
// memory below its parent's: this parent is small, and the benchmark, with a
// registry inside, is not. Files below OUTPUT are written to disk afterwards,
// and the time that takes is one of the figures.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	figures := measure(exec.Command(os.Args[2], os.Args[3:]...))
	figures["fsync after"] = flush(os.Args[1])
	check(json.NewEncoder(os.Stdout).Encode(figures))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

// measure returns the program's figures: times in seconds, sizes in bytes.
func measure(cmd *exec.Cmd) map[string]float64 {
	cmd.Stderr = os.Stderr
	syscall.Sync() // no run pays for the dirty pages of the one before
	start := time.Now()
	check(cmd.Start())
	pid, ended, inside := cmd.Process.Pid, make(chan struct{}), make(chan time.Duration)
	go func() { inside <- timeInSync(pid, ended) }()
	// The process stays a zombie until Wait, and its account can be read.
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	read, written := account(pid)
	check(cmd.Wait())
	wall := time.Since(start)
	close(ended)
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return map[string]float64{
		"wall":     wall.Seconds(),
		"CPU":      (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), // its children's too
		"peak":     float64(usage.Maxrss << 10),
		"read":     read,
		"written":  written,
		"in fsync": (<-inside).Seconds(),
	}
}

// account returns how many bytes a process has read in all calls, from files and
// sockets, and how many it has written in pages of files.
func account(pid int) (read, written float64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	check(err)
	var other float64
	_, err = fmt.Sscanf(string(text), "rchar: %g\nwchar: %g\nsyscr: %g\nsyscw: %g\nread_bytes: %g\nwrite_bytes: %g",
		&read, &other, &other, &other, &other, &written)
	check(err)
	return read, written
}

// timeInSync looks every few milliseconds whether a thread of a process is inside
// fsync or fdatasync. It needs no privileges and slows nothing down that it looks
// at.
func timeInSync(pid int, ended <-chan struct{}) (inside time.Duration) {
	const every = 10 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return inside
		case <-tick.C:
			if syncing(pid) {
				inside += every
			}
		}
	}
}

func syncing(pid int) bool {
	names, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid))
	for _, name := range names {
		text, _ := os.ReadFile(name) // nothing, where the thread has ended
		number, _, _ := strings.Cut(string(text), " ")
		if number == strconv.Itoa(syscall.SYS_FSYNC) || number == strconv.Itoa(syscall.SYS_FDATASYNC) {
			return true
		}
	}
	return false
}

// flush returns how long it takes to have the files below dir on disk, in
// seconds. A push has no such folder.
func flush(dir string) float64 {
	start := time.Now()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(name)
		check(err)
		defer f.Close()
		return f.Sync()
	})
	if !errors.Is(err, fs.ErrNotExist) {
		check(err)
	}
	return time.Since(start).Seconds()
}
