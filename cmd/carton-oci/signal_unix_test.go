//go:build !windows

package main

import "syscall"

var terminate = syscall.SIGTERM
