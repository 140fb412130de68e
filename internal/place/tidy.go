package place

// Tidy removes what dead processes left beside the complete output name: a
// process that is killed right behind the rename leaves its journal, or its lock.
// What a process is writing, what belongs to somebody else, and content that
// Options.Resume would go on with stay. What can't be removed stays, too: it is
// in nobody's way.
func Tidy(name string) {
	o, err := newOutput(name, Options{Resume: true})
	if err != nil {
		return
	}
	defer o.parent.Close()
	fi, err := o.parent.Lstat(o.base)
	if err != nil || !o.left() {
		return
	}
	switch {
	case fi.IsDir():
		o.tidyFolder()
	case fi.Mode().IsRegular():
		o.tidyFile()
	}
}

// left reports whether there is anything beside the output.
func (o *output) left() bool {
	for _, suffix := range []string{"", journalSuffix, lockSuffix, asideSuffix} {
		if _, err := o.parent.Lstat(o.partial() + suffix); err == nil {
			return true
		}
	}
	return false
}

func (o *output) tidyFile() {
	h, err := o.acquire(o.partial())
	if err != nil {
		return
	}
	defer h.Close()
	if fi, err := h.Stat(); err == nil && fi.Size() > 0 && o.journalled() {
		return
	}
	o.removeStaleJournal()
	o.parent.Remove(o.partial()) // last, as it is the lock
}

func (o *output) tidyFolder() {
	d, err := o.lockFolder()
	if err != nil {
		return
	}
	defer d.unlock()
	if d.readRecord() != nil || d.hasAside() || d.recover() != nil {
		return
	}
	if fi, err := o.parent.Lstat(o.partial()); err == nil && (!d.isOurs(fi) || o.journalled() || d.removeOurs(o.partial()) != nil) {
		return
	}
	o.removeStaleJournal()
}

// hasAside reports whether a folder that was to be replaced waits for somebody to
// look at it. To give it its name back would take away the one that was found.
func (d *Folder) hasAside() bool {
	for _, base := range []string{d.out.partial(), d.out.partial() + asideSuffix} {
		if fi, err := d.out.parent.Lstat(base); err == nil && d.isAside(fi) {
			return true
		}
	}
	return false
}

// journalled reports whether there is a journal that could be gone on with, or that
// nobody can look at now.
func (o *output) journalled() bool {
	f, err := o.staleJournal(o.partial() + journalSuffix)
	if f == nil {
		return err != nil
	}
	defer f.Close()
	fi, err := f.Stat()
	return err != nil || fi.Size() > 0
}

// removeStaleJournal removes a journal of ours that nothing belongs to. The caller
// holds the lock.
func (o *output) removeStaleJournal() {
	if ours, err := o.ownJournal(); ours && err == nil {
		o.parent.Remove(o.partial() + journalSuffix)
	}
}
