//go:build unix && !linux

package place

import "os"

// umask returns the bits that new files and folders of this process lack.
func umask() os.FileMode { return setUmask() }
