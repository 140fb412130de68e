//go:build unix

package localfile

import "syscall"

// nonblock has a pipe opened without waiting for its other end.
const nonblock = syscall.O_NONBLOCK
