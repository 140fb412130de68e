package place

// Tidy removes what dead processes left beside the complete output name: a
// process that is killed right behind the rename leaves its journal. What a process
// is writing, what belongs to somebody else, and content that Options.Resume would
// go on with stay. What can't be removed stays, too: it is in nobody's way.
func Tidy(name string) {
	o, err := newOutput(name, Options{Resume: true})
	if err != nil {
		return
	}
	defer o.close()
	fi, err := o.parent.Lstat(o.base)
	if err != nil || !fi.IsDir() && !fi.Mode().IsRegular() {
		return
	}
	if _, err := o.parent.Lstat(o.partial() + journalSuffix); err != nil || o.lock() != nil {
		return
	}
	if fi.IsDir() && (o.hasAside() || o.recover() != nil) {
		return
	}
	defer o.removeJournal()
	o.made, err = o.parent.Lstat(o.partial())
	switch {
	case err != nil || o.journalled() && (o.made.IsDir() || o.made.Size() > 0):
	case o.made.IsDir():
		_ = o.removeOurs(o.partial())
	case o.made.Mode().IsRegular() && ownedByCaller(o.made) && (o.journal.ours || o.made.Size() == 0):
		o.parent.Remove(o.partial())
	}
}

// hasAside reports whether a folder that was to be replaced waits for somebody to
// look at it, or may. To give it its name back would take away the one that was found.
func (o *output) hasAside() bool {
	for _, base := range o.folderNames()[:2] {
		if e, err := o.look(base); err != nil || e.whose == waiting {
			return true
		}
	}
	return false
}
