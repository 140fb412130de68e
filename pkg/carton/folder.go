package carton

import (
	"errors"
	"io"
	"io/fs"
	"maps"

	"github.com/carton-oci/carton-oci/internal/localfile"
)

// OpenDir opens the carton that is unpacked in a folder, which must hold a
// MANIFEST. Every file must be listed there, but for the symlink [ModelsName] that
// a mounted image of a carton has, and every one listed must be there or in LINKS.
// The folders' listings are read, but no content except that of MANIFEST and
// LINKS; a file that changes later is ErrChecksum when it is read. Nothing outside
// of the folder is read, whatever symlinks say and whoever changes them meanwhile.
func OpenDir(dir string) (Source, error) {
	root, err := localfile.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	f, err := openFS(localfile.FS(root), root.Close)
	if err != nil {
		root.Close()
	}
	return f, err
}

func openFS(fsys fs.FS, end func() error) (Source, error) {
	manifest, links, err := readLists("folder", func(name string, limit int64) ([]byte, error) {
		return readOwnFile(fsys, name, limit)
	})
	if err != nil {
		return nil, err
	}
	found, err := walkFiles(fsys)
	if err != nil {
		return nil, err
	}
	if _, listed := manifest.Lookup(ModelsName); !listed && found[ModelsName].Target == ModelsTarget {
		delete(found, ModelsName)
	}
	members, err := matchMembers(manifest, links, held{
		what: "folder", len: len(found), all: maps.Keys(found),
		get: func(p string) (Member, bool) { m, ok := found[p]; return m, ok },
	})
	if err != nil {
		return nil, err
	}
	open := func(m Member) (io.ReadCloser, error) { return openRegular(fsys, m.Path) }
	return NewFileSource(FileSource{Manifest: manifest, Links: links, Members: members, Open: open, Close: end})
}

// An image of a carton has one symlink that is no member and that MANIFEST does
// not list: from the folder that KServe mounts of every image to the one that a
// carton's files are in. Where the image is mounted, or unpacked by another
// program, the folder is the carton all the same.
const (
	ModelsName   = "models"
	ModelsTarget = "model"
)

// readOwnFile reads MANIFEST or LINKS, at most limit bytes; nil where it is not
// there.
func readOwnFile(fsys fs.FS, name string, limit int64) ([]byte, error) {
	info, err := fs.Lstat(fsys, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errorf(ErrFormat, name, "is not a regular file")
	}
	f, err := openRegular(fsys, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAtMost(f, name, limit)
}

// readAtMost reads all of r, which must be at most limit bytes.
func readAtMost(r io.Reader, name string, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, errorf(ErrLimit, name, "is larger than %d bytes", limit)
	}
	return b, nil
}

// walkFiles returns the regular files and symlinks of fsys by path, with
// nothing of MANIFEST in them yet. Anything else but folders is ErrFormat.
func walkFiles(fsys fs.FS) (map[string]Member, error) {
	found := map[string]Member{}
	var paths Paths
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case p == ".":
			return nil
		case d.IsDir():
			return CheckPath(p)
		}
		if err := paths.Add(p); err != nil {
			return err
		}
		if len(found) >= MaxMembers+2 { // MANIFEST and LINKS
			return errorf(ErrLimit, "", "the folder holds more than %d files", MaxMembers)
		}
		found[p], err = fileMember(fsys, p, d)
		return err
	})
	return found, err
}

// fileMember says what lies at p of fsys.
func fileMember(fsys fs.FS, p string, d fs.DirEntry) (Member, error) {
	m := Member{Size: -1, Place: PlaceFile}
	switch d.Type() {
	case 0:
		info, err := d.Info()
		if err != nil {
			return m, err
		}
		m.Size, m.Ranged = info.Size(), true
	case fs.ModeSymlink:
		target, err := fs.ReadLink(fsys, p)
		if err != nil {
			return m, err
		}
		if m.Target = target; target == "" {
			return m, errorf(ErrFormat, p, "symlink has no target")
		}
	default:
		return m, errorf(ErrFormat, p, "is neither a file, a folder nor a symlink, but %s", localfile.Kind(d.Type()))
	}
	return m, nil
}

// openRegular opens what was a regular file when the folder was listed.
func openRegular(fsys fs.FS, name string) (fs.File, error) {
	file, err := fsys.Open(name)
	if errors.Is(err, localfile.ErrKind) {
		return nil, errorf(ErrFormat, name, "is not a regular file any more")
	}
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errorf(ErrFormat, name, "is not a regular file any more")
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
