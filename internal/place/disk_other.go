//go:build !unix

package place

import "os"

// syncFolder does nothing: renames are journalled, and a folder can't be synced.
func syncFolder(*os.File) error { return nil }

// chmod does nothing: who may do what is not in modes here.
func chmod(*os.File, os.FileMode) error { return nil }

// chmodFolder does nothing: folders have no such modes.
func chmodFolder(*os.Root, string, os.FileMode) error { return nil }
