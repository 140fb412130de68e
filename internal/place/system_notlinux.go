//go:build !linux

package place

import "os"

// What only Linux tells: see system_linux.go.

// isMountPoint returns false: renaming or removing one will say it.
func isMountPoint(*os.Root, string) bool { return false }

func syncAll(*os.Root) (bool, error) { return false, nil }

// StartWriteback does nothing.
func StartWriteback(*os.File, int64, int64) {}

func umask() os.FileMode { return setUmask() }

func lockedBy(os.FileInfo) string { return "" }
