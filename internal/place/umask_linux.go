package place

import (
	"bytes"
	"os"
	"strconv"
)

// umask returns the bits that new files and folders of this process lack. It is
// read, not set and set back, because other goroutines may be making files.
func umask() os.FileMode {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return setUmask()
	}
	_, rest, _ := bytes.Cut(b, []byte("\nUmask:\t"))
	digits, _, _ := bytes.Cut(rest, []byte("\n"))
	mask, err := strconv.ParseUint(string(digits), 8, 32)
	if err != nil {
		return setUmask()
	}
	return os.FileMode(mask) & os.ModePerm
}
