//go:build !linux

package place

import "os"

// isMountPoint returns false: renaming or removing one will say it.
func isMountPoint(*os.Root, string) bool { return false }
