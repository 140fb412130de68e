package place

// Born is what of a folder's identity is not its inode.
var Born = born
