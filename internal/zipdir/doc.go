// Package zipdir reads the central directory of a zip, and believes nothing
// else.
//
// Go's archive/zip reads past junk, gaps, overlaps, duplicate names and a
// second end record, and hides where an entry's local header is. A file from a
// stranger must not be two files to two readers, and over HTTP the directory is
// all that opening may cost. So:
//
//   - There is one end record, with nothing behind it but its comment. A zip64
//     end record lies just before it, and the two agree. PyTorch writes one
//     however small the file is.
//   - The directory ends where the end records begin. Its entries fill it.
//   - Entries, in the order of their offsets, follow each other from byte 0 to the
//     directory: none shares a byte with another. What a local header may hold
//     beyond the name is at most 64 KiB, so no more than that can hide between two.
//   - An entry is stored or deflated, not encrypted, on this disk, and a regular
//     file or a folder. Its zip64 field holds what the entry asks for.
//   - Names are relative and clean, separated by slashes, UTF-8 without control
//     characters and backslashes, at most [MaxName] bytes. None occurs twice, and
//     no file is also a folder.
//
// [Entry.Check] reads a local header and holds it against the directory. Sizes
// of zero under a data descriptor are what PyTorch writes there.
//
// APPNOTE.TXT 6.3.10:
// https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
package zipdir
