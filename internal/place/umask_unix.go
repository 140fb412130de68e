//go:build unix

package place

import (
	"os"
	"sync"
	"syscall"
)

var settingUmask sync.Mutex

// setUmask reads the umask in the one way that every system has: by setting it.
// A file that is made meanwhile is its owner's alone.
func setUmask() os.FileMode {
	settingUmask.Lock()
	defer settingUmask.Unlock()
	mask := syscall.Umask(0o077)
	syscall.Umask(mask)
	return os.FileMode(mask) & os.ModePerm
}
