// Package zipdir reads the central directory of a zip, and believes nothing
// else. It is the one reader of zips: [Options] say what a kind of file may hold.
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
//     beyond the name is at most 64 KiB, so no more than that can hide between two
//     before their headers are read.
//   - An entry is not encrypted, on this disk, of a method that Options names, and
//     a regular file, a folder or, where Options allow it, a symlink. Its zip64
//     field holds what the entry asks for. Sizes add up to less than 2^63.
//   - Names are what Options.Name lets pass. Without it they have no [NameFault]
//     and at most [MaxName] bytes, none occurs twice, and no file is also a folder.
//
// [Directory.Check] and [Entry.Check] read local headers and hold them against the
// directory: name, method, flags but for the level of compression, CRC and sizes,
// of which a streamed entry may have zeros there. Nothing follows the data but the
// next entry or a true data descriptor. A zip64 field there that nothing asks for
// repeats the sizes, as Python writes it, or is a streamed entry's, as PyTorch does.
//
// [Inflate] unpacks a deflate stream that ends where its bytes do.
//
// APPNOTE.TXT 6.3.10:
// https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
package zipdir
