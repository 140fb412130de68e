//go:build !unix

package place

import "os"

// umask returns 0: there is none here, and modes are next to nothing.
func umask() os.FileMode { return 0 }
