package place

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Who may do what is in access control lists here, and in no modes; there is no
// umask, and what a name has instead of an inode only an open file tells ([born]).
// Renames are journalled, and a folder can't be synced.

const modeBits = 0

func ownedByCaller(fs.FileInfo) bool { return true }
func ownedByRoot(fs.FileInfo) bool   { return true }
func callerIsRoot() bool             { return false }
func links(fs.FileInfo) uint64       { return 1 }
func inode(fs.FileInfo) string       { return "file" }
func syncFolder(*os.File) error      { return nil }
func unlessNoModes(error) error      { return nil }
func setUmask() os.FileMode          { return 0 }

// lock takes an exclusive lock that ends with f, or with the process. Windows
// enforces locks, so one byte far behind any content is locked.
func lock(f *os.File) error {
	at := &windows.Overlapped{Offset: 0xFFFFFFFE, OffsetHigh: 0x7FFFFFFF}
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, at)
	switch {
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION), errors.Is(err, windows.ERROR_IO_PENDING):
		return ErrBusy
	case errors.Is(err, windows.ERROR_INVALID_FUNCTION), errors.Is(err, windows.ERROR_NOT_SUPPORTED):
		return errNoLocks
	}
	return err
}

// born says which file or folder base is: by the number that its volume gives it for
// as long as it exists. A part of NTFS's number counts how often it was given.
func born(parent *os.File, base string) (string, error) {
	h, err := openIn(parent, base, windows.FILE_READ_ATTRIBUTES)
	if err != nil {
		return "", err
	}
	defer windows.CloseHandle(h)
	var fi windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(h, &fi); err != nil {
		return "", err
	}
	return fmt.Sprintf(" %08x%08x of %08x", fi.FileIndexHigh, fi.FileIndexLow, fi.VolumeSerialNumber), nil
}

// renameNew is as in system_linux.go.
func renameNew(parent *os.File, from, to string) error {
	h, err := openIn(parent, from, windows.DELETE)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(h)
	name, err := windows.UTF16FromString(to)
	if err != nil {
		return err
	}
	// FILE_RENAME_INFORMATION, https://learn.microsoft.com/windows-hardware/drivers/ddi/ntifs/ns-ntifs-_file_rename_information
	var info struct {
		replaceIfExists bool
		rootDirectory   windows.Handle
		fileNameLength  uint32 // in bytes
		fileName        [windows.MAX_PATH]uint16
	}
	if len(name) > len(info.fileName) {
		return windows.ERROR_FILENAME_EXCED_RANGE
	}
	info.rootDirectory = windows.Handle(parent.Fd())
	info.fileNameLength = 2 * uint32(len(name)-1)
	copy(info.fileName[:], name)
	var done windows.IO_STATUS_BLOCK
	return errno(windows.NtSetInformationFile(h, &done, (*byte)(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)),
		windows.FileRenameInformation))
}

// inUse reports whether somebody who has a file open is in the way.
func inUse(err error) bool {
	return errors.Is(err, windows.ERROR_ACCESS_DENIED) || errors.Is(err, windows.ERROR_SHARING_VIOLATION)
}

// swap is not to be had: two renames have to do.
func swap(*os.File, string, string) error { return errors.ErrUnsupported }

// openIn opens what has a name in an open folder, not what it may point to. It
// keeps nobody from anything.
func openIn(parent *os.File, base string, access uint32) (windows.Handle, error) {
	name, err := windows.NewNTUnicodeString(base)
	if err != nil {
		return 0, err
	}
	at := &windows.OBJECT_ATTRIBUTES{
		RootDirectory: windows.Handle(parent.Fd()),
		ObjectName:    name,
		Attributes:    windows.OBJ_CASE_INSENSITIVE,
	}
	at.Length = uint32(unsafe.Sizeof(*at))
	var (
		h    windows.Handle
		done windows.IO_STATUS_BLOCK
	)
	err = windows.NtCreateFile(&h, windows.SYNCHRONIZE|access, at, &done, nil, 0,
		windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, windows.FILE_OPEN,
		windows.FILE_OPEN_REPARSE_POINT|windows.FILE_OPEN_FOR_BACKUP_INTENT|windows.FILE_SYNCHRONOUS_IO_NONALERT, 0, 0)
	return h, errno(err)
}

// errno makes an error of the NT interface one that errors.Is knows.
func errno(err error) error {
	var status windows.NTStatus
	if errors.As(err, &status) {
		return status.Errno()
	}
	return err
}
