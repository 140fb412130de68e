//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package place

import "os"

func lock(*os.File) error { return errNoLocks }
