//go:build !unix

package place

import "os"

// syncFolder does nothing: renames are journalled, and a folder can't be synced.
func syncFolder(*os.File) error { return nil }

// chmodFolder does nothing: folders have no such modes.
func chmodFolder(*os.Root, string) error { return nil }
