//go:build !unix

package place

import "io/fs"

// ownedByCaller returns true: who may write to a folder is a matter of its
// access control list here.
func ownedByCaller(fs.FileInfo) bool { return true }

// modeBits are the mode bits that mean something here.
const modeBits = 0

func links(fs.FileInfo) uint64 { return 1 }

// identity returns what every folder is called: there are no inodes to tell.
func identity(fs.FileInfo) string { return "folder" }

func ownedByRoot(fs.FileInfo) bool { return true }

func callerIsRoot() bool { return false }
