package lan

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// namespace is a network namespace that has no name: it is gone when nobody is in it
// and this process has closed its file, or ended.
type namespace struct{ file *os.File }

func newNamespace(t testing.TB) (*namespace, error) {
	type made struct {
		file *os.File
		err  error
	}
	answer := make(chan made)
	go func() {
		runtime.LockOSThread() // for good: the thread is in the new namespace, and ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			answer <- made{err: fmt.Errorf("unshare: %w", err)}
			return
		}
		file, err := os.Open("/proc/thread-self/ns/net")
		answer <- made{file, err}
	}()
	m := <-answer
	if m.err != nil {
		return nil, m.err
	}
	t.Cleanup(func() { _ = m.file.Close() })
	return &namespace{m.file}, nil
}

// path names the namespace to another program.
func (n *namespace) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file.Fd()) }

// do calls f with this goroutine's thread in the namespace.
func (n *namespace) do(f func()) {
	runtime.LockOSThread()
	before, err := os.Open("/proc/thread-self/ns/net")
	if err == nil {
		err = unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET)
	}
	if err != nil {
		panic(err)
	}
	defer func() {
		if err := unix.Setns(int(before.Fd()), unix.CLONE_NEWNET); err == nil {
			runtime.UnlockOSThread() // else the thread ends with the goroutine
		}
		_ = before.Close()
	}()
	f()
}
