package place

import (
	"io/fs"
	"os"
)

// syncEach is the number of files and folders up to which each is synced by
// itself. Beyond it the whole file system is, where the system can: 10,000
// syncs take minutes on a disk, one for all of them seconds.
const syncEach = 64

// syncTree puts all files and folders below root on the disk.
func syncTree(root *os.Root) error {
	files, folders, err := list(root)
	if err != nil {
		return err
	}
	if len(files)+len(folders) > syncEach {
		if done, err := syncAll(root); done {
			return err
		}
	}
	for _, p := range files {
		// Windows syncs only what is open for writing.
		if err := syncPath(root, p, os.O_RDWR, (*os.File).Sync); err != nil {
			return err
		}
	}
	for _, p := range folders {
		if err := syncPath(root, p, os.O_RDONLY, syncFolder); err != nil {
			return err
		}
	}
	return nil
}

// list returns what can be synced: no symlinks.
func list(root *os.Root) (files, folders []string, err error) {
	err = fs.WalkDir(root.FS(), ".", func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir():
			folders = append(folders, p)
		case e.Type().IsRegular():
			files = append(files, p)
		}
		return nil
	})
	return files, folders, err
}

func syncPath(root *os.Root, p string, flag int, sync func(*os.File) error) error {
	f, err := root.OpenFile(p, flag, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return sync(f)
}
