package place

// Born is what of a folder's identity is not its inode.
var Born = born

// What a journal begins with, and the bytes before what is its caller's.
const (
	JournalMark = journalMark
	TextBytes   = textBytes
)
