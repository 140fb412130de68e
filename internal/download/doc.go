// Package download fills files from ranges: several at once, within one part of
// content and across parts, each written straight to its final offset, and
// remembers what has arrived so that another process can go on. It knows nothing
// of cartons or registries: a [Job] says where bytes come from and go to.
//
// # Rules that this package keeps
//
// A part is content of a known size and sha256. [Run] returns nil when every
// part had its hash, and calls Job.Done for each as that is known. Bytes on the
// disk are believed when the sha256 of all of the part was right, and for no
// other reason. A part without one, the range of something larger, is brought
// and never believed: its caller says so.
//
// Ranges. A part with Ranged set is read in closed ranges of at most
// [RangeSize], less where there is little to share out, by as many workers as
// have nothing else to do. Any other part is read as one verified stream from its
// beginning; those of one bundle one after another. No more connections are open
// at once than Options.Concurrency, or than the [Budget] that several runs share.
//
// The first range of a part is asked for alone. A place that answers it with
// something else (httprange.ErrNoRanges) gets no second one: the part is read as
// a stream.
//
// Hashing. sha256 takes bytes in order, ranges come in any. A range that begins
// where the hash has got to is hashed as it streams. Any other is read back from
// the file once it is next, when it still lies in the page cache; a worker does
// that in preference to asking for more, and none asks for bytes that are more
// than [Ahead] before the hash of its part. One CRC-32 a part (IEEE, as in a
// zip) is computed on the way.
//
// Blocks. A part is counted in blocks of [BlockSize]. The CRC-32C of each, as it
// came off the wire, is kept in memory and in the [Journal], and is compared
// whenever the block is read back: a block that the disk gives back otherwise is
// fetched again. It locates damage and proves nothing.
//
// Going on. What the journal of an earlier run claims is read back and hashed
// like any other block that has arrived. Where the hash of a part is wrong in
// the end, blocks of the earlier run are thrown away and fetched again, once;
// then a part with Elsewhere set is read as a verified stream; then the part has
// wrong content (Job.Wrong).
//
// Memory is one buffer of 256 KiB a worker and 8 bytes a block; it depends
// neither on the ranges in flight nor on their size.
//
// Errors of a place are returned as they are. One with a method Temporary() bool
// that returns true is tried again, three times in all for a part; anything else
// ends the run. Nothing is retried here that the readers retry themselves.
package download
