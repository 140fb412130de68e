// Package place is the one way to put a file or a folder in its place: beside
// its final name as NAME.partial, and under its final name by one rename, when
// it is complete and on the disk.
//
// # The names of an output, and its states
//
//	NAME                  what was there before, or all of the new content
//	NAME.partial          the new content, on its way
//	NAME.partial.journal  locked while a process makes NAME; says that NAME.partial is ours
//	NAME.partial.old      where a folder that is replaced waits on systems that can't swap two names
//
// Each step leaves one of these states to the next process, should this one be killed.
// It takes the lock, and then does what stands on the right.
//
//	begin    journal, empty                            begins anew
//	         journal, NAME.partial, empty              begins anew
//	         journal that says whose NAME.partial is   goes on with it, or begins anew without Options.Resume
//	keep     the same, no lock
//	commit   NAME, journal                             removes the journal (Tidy), or replaces NAME
//	discard  journal                                   begins anew
//
// Between begin and commit a folder that is replaced has more states. The journal
// says first that the old folder is about to lose its name; then the two folders swap
// names, or the old one becomes NAME.partial.old and NAME.partial becomes NAME.
//
//	old set aside, no NAME       gives the old folder its name back
//	old set aside, NAME is ours  gives the old folder its name back: nobody has looked yet what
//	                             came into it meanwhile
//	old is known to be all ours  removes what is left of it
//
// # Rules
//
// A final name holds what it held before, or all of the new content. A file
// that exists is not touched without Options.Replace: the rename itself refuses
// to replace it, whoever made it meanwhile.
//
// Nothing is taken over, removed or believed that this package did not make.
//
//   - A folder is replaced only where the caller accounts for everything in it
//     ([Folder.MayReplace]); else the error names the first few strangers. It is
//     looked at again once it has left its name, and gets that back where
//     something has come into it, or where a process was killed before it
//     could look; and what is removed of it is what was accounted
//     for, one by one.
//   - A journal is ours where it is a file that begins as ours do, or is empty. A file
//     NAME.partial is ours where such a journal lies beside it; a folder, and
//     NAME.partial.old, where the journal names it by its inode and time of birth. All
//     of them must belong to the caller. What has one of these names and is something
//     else is an error where the name is needed, and otherwise left alone.
//   - What can't be looked at is an error. It is neither a free name nor somebody else's.
//   - What is there already counts as an output only if it is as this package would
//     have left it: see [Foreign].
//
// One process at a time. Another process that wants the name gets [ErrBusy] at once.
// Who gets the lock takes over what a dead process left if it is a plain file with
// one name that belongs to the caller: what anybody else could still write to is
// never used.
//
// The folder that holds NAME is opened once and everything is done relative to
// it, so that swapping a component of the path for a symlink leads nowhere
// else. Where that folder has lost its name by the end, the output is complete in
// it, and an error says so. NAME itself must not be a symlink.
//
// In a folder where others may rename files (one that all may write to, without
// the sticky bit) NAME.partial is looked at before and after it is renamed, and
// must be the file or folder that was written; else the output is an error. What
// remains possible there is what others may do to any name in such a folder:
// give NAME to something else as soon as Commit has returned, or remove it.
//
// Nothing is left behind: after Commit or Discard there is no NAME.partial and no
// journal. A process that is killed leaves them, and the next one takes over. With
// Options.Resume it also takes over the content, of which the journal says what it
// is; Keep leaves both on purpose (package download says when). An output that can't
// be begun, for whatever reason, leaves them as they were. Content is taken over from
// plain files with one name that belong to the caller and that nobody else may write
// to; this package believes nothing of it, and what a folder holds besides is for
// [Folder.Prune] to remove. Without locks nothing is kept: the next process could not
// tell that it may.
//
// While it is partial an output can be read by its owner only; Commit gives it the
// mode that the umask leaves of 0666, or 0777 for folders.
package place
