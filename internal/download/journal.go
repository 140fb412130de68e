package download

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sort"
	"strings"
	"sync"
)

// A journal is a file beside the one that is being made:
//
//	header   32 bytes of text (journalMagic), 32 bytes: the job's identity
//	records  16 bytes each, little-endian: part, block, CRC-32C of the block's
//	         bytes as they came, CRC-32C of the 12 bytes before
//
// A record is written after the block, by one write, and is never changed: a
// process that is killed leaves whole records, and at most one that is cut off.
// Of two for one block the later one counts. Nothing is synced: what a crash of
// the system makes of either file is found out by reading the blocks again.
//
// The identity is of everything that says what is where, so that the records
// need not: names, sizes, hashes and offsets come from who reads the journal.
const (
	journalMagic = "carton-oci partial, version 1\n\x00\x00"
	headerSize   = len(journalMagic) + sha256.Size
	recordSize   = 16
	// maxAgain is how many records a journal may hold for every block, on average,
	// and maxMore how many besides, before no more of it is read.
	maxAgain, maxMore = 8, 1024
)

// JournalFile is where a journal is kept: an *os.File.
type JournalFile interface {
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
}

// Journal remembers what of a job has arrived. A nil Journal remembers nothing.
type Journal struct {
	f      JournalFile
	claims []claim // of an earlier run: sorted, each block once

	mu  sync.Mutex
	off int64
}

// claim says that a block has arrived.
type claim struct{ part, block, crc uint32 }

// OpenJournal reads the journal in f, and goes on with it if it is of the same
// job: parts that agree in all but Ranged, Elsewhere and Bundle, in the same
// order, and the same text in what. A file that is anything else becomes an empty
// journal; a record that is none ends it. Only f's own errors are errors.
func OpenJournal(f JournalFile, what string, parts []Part) (*Journal, error) {
	j := &Journal{f: f}
	head := append([]byte(journalMagic), identity(what, parts)...)
	got := make([]byte, headerSize)
	n, err := f.ReadAt(got, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	if string(got[:n]) == string(head) {
		if err := j.read(parts); err != nil {
			return nil, fmt.Errorf("read journal: %w", err)
		}
		return j, f.Truncate(j.off)
	}
	if err := f.Truncate(0); err != nil {
		return nil, err
	}
	j.off = int64(headerSize)
	_, err = f.WriteAt(head, 0)
	return j, err
}

// Empty reports whether there is nothing to go on with: the files may hold
// anything.
func (j *Journal) Empty() bool { return j == nil || len(j.claims) == 0 }

// identity is a hash of what is being made.
func identity(what string, parts []Part) []byte {
	h := sha256.New()
	fmt.Fprintf(h, "%q %d\n", what, len(parts))
	for i := range parts {
		p := &parts[i]
		fmt.Fprintf(h, "%q %d %s %d\n", p.Name, p.Size, p.SHA256, p.Offset)
	}
	return h.Sum(nil)
}

// read reads the records.
func (j *Journal) read(parts []Part) error {
	limit := maxMore
	for i := range parts {
		limit += maxAgain * blocksOf(parts[i].Size)
	}
	j.off = int64(headerSize)
	r := io.NewSectionReader(j.f, j.off, int64(limit)*recordSize)
	buf := make([]byte, 4096*recordSize)
	for more := true; more; {
		n, err := io.ReadFull(r, buf)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		more = err == nil
		for b := buf[:n]; len(b) >= recordSize; b = b[recordSize:] {
			c, ok := parseRecord(b)
			if !ok || int64(c.part) >= int64(len(parts)) || int64(c.block) >= int64(blocksOf(parts[c.part].Size)) {
				more = false
				break
			}
			j.claims = append(j.claims, c)
			j.off += recordSize
		}
	}
	j.tidy()
	return nil
}

// tidy sorts the claims, and keeps the last one for each block.
func (j *Journal) tidy() {
	slices.SortStableFunc(j.claims, func(a, b claim) int {
		return cmp.Or(cmp.Compare(a.part, b.part), cmp.Compare(a.block, b.block))
	})
	kept := j.claims[:0]
	for i, c := range j.claims {
		if i+1 < len(j.claims) && j.claims[i+1].part == c.part && j.claims[i+1].block == c.block {
			continue
		}
		kept = append(kept, c)
	}
	j.claims = kept
}

func parseRecord(b []byte) (claim, bool) {
	c := claim{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])}
	return c, binary.LittleEndian.Uint32(b[12:]) == crc32.Checksum(b[:12], castagnoli)
}

// of returns what an earlier run claims of a part, block by block.
func (j *Journal) of(part int) []claim {
	if j == nil {
		return nil
	}
	from := sort.Search(len(j.claims), func(i int) bool { return int64(j.claims[i].part) >= int64(part) })
	to := sort.Search(len(j.claims), func(i int) bool { return int64(j.claims[i].part) > int64(part) })
	return j.claims[from:to]
}

// add remembers a block that is in its file.
func (j *Journal) add(part, block int, crc uint32) error {
	if j == nil {
		return nil
	}
	var b [recordSize]byte
	binary.LittleEndian.PutUint32(b[:], uint32(part))   //nolint:gosec // at most carton.MaxMembers
	binary.LittleEndian.PutUint32(b[4:], uint32(block)) //nolint:gosec // 2^32 blocks are 4 PiB
	binary.LittleEndian.PutUint32(b[8:], crc)
	binary.LittleEndian.PutUint32(b[12:], crc32.Checksum(b[:12], castagnoli))
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.f.WriteAt(b[:], j.off); err != nil {
		return err
	}
	j.off += recordSize
	return nil
}

// Sentence says how one goes on after an error: "run it again to go on: 1.2 GB
// of 4.0 GB are there (NAME)"; "" where another run has nothing to go on with.
func (r Result) Sentence(name string) string {
	if r.There < BlockSize {
		return ""
	}
	return fmt.Sprintf("run it again to go on: %s of %s are there (%s)", size(r.There), size(r.Total), name)
}

// size writes a number of bytes in decimal units, as disks are sold.
func size(n int64) string {
	const units = "kMGTPE"
	f := float64(n)
	i := -1
	for f >= 999.95 && i+1 < len(units) {
		f /= 1000
		i++
	}
	if i < 0 {
		return fmt.Sprintf("%d bytes", n)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", f), ".0") + " " + units[i:i+1] + "B"
}
