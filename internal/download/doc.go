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
// at once than Options.Concurrency.
//
// Copies. A part with Copied set is copied from this machine as one verified stream,
// with no connection, and leaves its bundle: one of which all parts are copied is not
// asked for. Where the copy can't be read, or is other content, the part is brought
// like any other, and the reason is reported as that of a retry.
//
// The first range of a part is asked for alone. A place that answers it with
// something else (ranges.ErrNone) gets no second one: the part is read as
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
// then a part with Elsewhere set is read as a verified stream, and where there is a
// journal any other is fetched again, all of it, once; then the part has wrong
// content (Job.Wrong).
//
// # When a partial is given up
//
// What has arrived of an output is given up for one reason only: content was
// refused (its hash was wrong, or its source found that it breaks its format while
// it was read) and was refused again when it was fetched once more. Every other end
// keeps the output's partial and its journal: errors before the first byte, places
// that are down, answers that are none (httprange.ErrAnswer), an interruption, a disk
// or a journal that is full or can't be opened, a last step that fails. [Partial] is
// where that is decided, for files, folders and blobs of image layouts alike.
//
// What follows from it, and what it does not promise:
//
//   - A part that strangers link to, in a file of its own, is no reason: its hosts may
//     answer otherwise tomorrow. Where all parts lie in one file it is one, because
//     the size that a host told has placed all that follows.
//   - Sizes are no part of a journal's identity: a host that tells none, or another,
//     unmakes nothing. Where other sizes would move the parts of one file, the run
//     ends with an error, and somebody has to say which sizes are right.
//   - The partial of another job is given up once a byte of this one was had, not
//     before.
//   - A journal is as good as each of its records: one that is damaged costs its block.
//   - After a sync that failed, what the system shows of a file may not be what is on
//     the disk. The next run writes all of it again, so that its own sync tells.
//   - Less than BlockSize, of all runs together, is no partial: it is not kept. Nor is
//     anything where the file system has no locks, or where others could have written
//     to it (package place): the next run could not use it.
//
// Memory is one buffer of 256 KiB a worker and 8 bytes a block; it depends
// neither on the ranges in flight nor on their size.
//
// Errors of a place are returned as they are. One with a method Temporary() bool
// that returns true is tried again, three times in all for a part; anything else
// ends the run. Nothing is retried here that the readers retry themselves.
package download
