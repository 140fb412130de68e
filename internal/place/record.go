package place

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
)

// NAME.partial.lock says which folders beside it this package has made, or has
// moved there: their identities, which stay when a folder is renamed. Who finds
// NAME.partial, or NAME.partial.old, and not its identity in the lock's file, has
// found something else of that name. The file is opened as NAME.partial is: a
// plain one of the caller's, so that nobody else has written it.
//
// A folder that is being replaced is the caller's until it was looked at once more
// behind its name: "aside IDENTITY" says that it is to get its name back.
//
//	carton-oci lock
//	IDENTITY
//	aside IDENTITY
//	…
const (
	lockMark  = "carton-oci lock\n"
	asideMark = "aside "
)

// maxLockBytes is more than a few hundred identities.
const maxLockBytes = 4 << 10

// readRecord reads what a dead process has written of the folders. Where it can't
// be read, d.made stays nil, and unlock leaves the file to who can.
func (d *Folder) readRecord() error {
	if d.lock.fresh {
		d.made = map[string]bool{}
		return nil
	}
	b, err := io.ReadAll(io.NewSectionReader(d.lock, 0, maxLockBytes))
	if err != nil {
		return Explain("read", d.out.beside(d.out.partial()+lockSuffix), err)
	}
	d.made = map[string]bool{}
	if text, ok := strings.CutPrefix(string(b), lockMark); ok {
		lines := strings.Split(text, "\n")
		for _, id := range lines[:len(lines)-1] { // the last is empty, or was cut off
			if id != "" {
				d.made[id] = true
			}
		}
	}
	d.recorded = len(b)
	return nil
}

// remember writes a folder's identity into the lock's file: it and all that is in it
// may be removed.
func (d *Folder) remember(fi fs.FileInfo) error {
	id := d.identity(fi)
	if d.made[id] && !d.made[asideMark+id] {
		return nil
	}
	delete(d.made, asideMark+id)
	d.made[id] = true
	return d.writeRecord()
}

// setAside writes that a folder of the caller's is about to lose its name.
func (d *Folder) setAside(fi fs.FileInfo) error {
	d.made[asideMark+d.identity(fi)] = true
	return d.writeRecord()
}

// isAside reports whether a folder of the caller's was about to lose its name.
func (d *Folder) isAside(fi fs.FileInfo) bool {
	return fi.IsDir() && d.made[asideMark+d.identity(fi)]
}

// forget takes it out again: from now on the folder is its owner's.
func (d *Folder) forget(fi fs.FileInfo) {
	delete(d.made, d.identity(fi))
	delete(d.made, asideMark+d.identity(fi))
	d.writeRecord() //nolint:errcheck // unlock removes the file
}

// writeRecord is one write over what was there, with empty lines to its end: a
// process that is killed, or a disk that is full, leaves the one or the other.
func (d *Folder) writeRecord() error {
	text := lockMark
	for id := range d.made {
		text += id + "\n"
	}
	blank := strings.Repeat("\n", max(0, d.recorded-len(text)))
	_, err := d.lock.WriteAt([]byte(text+blank), 0)
	if err == nil {
		d.recorded = len(text + blank)
	}
	return Explain("create", d.out.name, err)
}

// identity names a folder that has one of the names that this package gives: its
// inode, and when it was made, since the inode of a folder that somebody has removed
// is soon another's.
func (d *Folder) identity(fi fs.FileInfo) string {
	o := d.out
	for _, base := range []string{o.partial(), o.partial() + asideSuffix, o.base} {
		if named, err := o.parent.Lstat(base); err == nil && os.SameFile(named, fi) {
			return identity(fi) + born(d.parent, base)
		}
	}
	return identity(fi) + " elsewhere"
}

// isOurs reports whether this package has made the folder that fi is of.
func (d *Folder) isOurs(fi fs.FileInfo) bool {
	return fi.IsDir() && ownedByCaller(fi) && d.made[d.identity(fi)]
}

// removeOurs removes the folder base and all that is in it, if it is ours: what
// is in it by way of the open folder, whatever happens to its name meanwhile.
func (d *Folder) removeOurs(base string) error {
	root, err := d.out.parent.OpenRoot(base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	fi, err := root.Stat(".")
	if err != nil || !d.isOurs(fi) {
		return err
	}
	names, err := readNames(root, ".")
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := root.RemoveAll(name); err != nil {
			return err
		}
	}
	root.Close() // Windows removes no folder that is open
	return d.out.parent.Remove(base)
}

// unlock removes the lock's file before it lets go of the lock, so that nobody
// locks a file that is about to lose its name. It stays where a folder is left
// that it says is ours, or may say so: without it nobody takes the folder over.
func (d *Folder) unlock() {
	o := d.out
	left := d.made == nil
	for _, base := range []string{o.partial(), o.partial() + asideSuffix} {
		fi, err := o.parent.Lstat(base)
		left = left || err == nil && (d.isOurs(fi) || d.isAside(fi))
	}
	if !left {
		o.parent.Remove(o.partial() + lockSuffix)
	}
	d.lock.Close()
	d.lock.File = nil
	d.parent.Close()
	if d.journal != nil {
		d.journal.Close()
	}
}

// readNames returns the names in a folder.
func readNames(root *os.Root, dir string) ([]string, error) {
	f, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}
