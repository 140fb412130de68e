package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// awaitZombie waits for the end of a child without reaping it.
func awaitZombie(pid int) {
	const (
		pPID    = 1
		wNoWait = 0x01000000
		wExited = 0x00000004
	)
	var info [128]byte // a siginfo_t
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, pPID, uintptr(pid),
			uintptr(unsafe.Pointer(&info[0])), wExited|wNoWait, 0, 0)
		if errno != syscall.EINTR {
			return
		}
	}
}

// account reads what a process has read and written.
func account(pid int) figures {
	var f figures
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return f
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch name {
		case "rchar":
			f.Read = n
		case "write_bytes":
			f.Written = n
		}
	}
	return f
}

func peak(state *os.ProcessState) int64 {
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return usage.Maxrss << 10
}

// sampler looks every few milliseconds whether a thread of a process is inside
// fsync or fdatasync. It needs no privileges and no tracing, and slows nothing
// down that it looks at.
type sampler struct {
	stop   atomic.Bool
	result chan float64
}

const sampleEvery = 10 * time.Millisecond

func startSampler(pid int) *sampler {
	s := &sampler{result: make(chan float64)}
	go func() {
		var inside time.Duration
		last := time.Now()
		for !s.stop.Load() {
			time.Sleep(sampleEvery)
			now := time.Now()
			if syncing(pid) {
				inside += now.Sub(last)
			}
			last = now
		}
		s.result <- inside.Seconds()
	}()
	return s
}

func (s *sampler) end() float64 {
	s.stop.Store(true)
	return <-s.result
}

func syncing(pid int) bool {
	names, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid))
	if err != nil {
		return false
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		number, _, _ := strings.Cut(string(text), " ")
		switch n, err := strconv.Atoi(number); {
		case err != nil:
		case n == syscall.SYS_FSYNC || n == syscall.SYS_FDATASYNC:
			return true
		}
	}
	return false
}

// syncAll writes what is dirty to disk, so that no run pays for the one before.
func syncAll() { syscall.Sync() }

// flush returns how long it takes to have files on disk, in seconds.
func flush(names []string) (float64, error) {
	start := time.Now()
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return 0, err
		}
		err = f.Sync()
		f.Close()
		if err != nil {
			return 0, err
		}
	}
	return time.Since(start).Seconds(), nil
}

// freeDisk returns how many bytes there are to have where dir is.
func freeDisk(dir string) int64 {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0
	}
	return int64(s.Bavail) * s.Bsize
}
