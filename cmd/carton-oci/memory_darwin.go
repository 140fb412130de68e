package main

import "syscall"

// peakMemory returns the most resident memory that this program has had, in
// bytes; 0 where it can't be known.
func peakMemory() int64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return usage.Maxrss
}
