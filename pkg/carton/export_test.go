package carton

import "io/fs"

// OpenFS opens the carton that is unpacked in fsys: for tests, without a disk.
func OpenFS(fsys fs.FS) (Source, error) { return openFS(fsys, nil) }
