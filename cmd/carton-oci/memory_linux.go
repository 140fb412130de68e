package main

import (
	"bufio"
	"os"
	"strconv"
	"strings"
)

// peakMemory returns the most resident memory that this program has had, in
// bytes; 0 where it can't be known. getrusage would count the program that
// started this one, up to exec.
func peakMemory() int64 {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			kib, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 64)
			return kib << 10
		}
	}
	return 0
}
