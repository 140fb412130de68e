package download

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"sort"
	"sync"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

// A journal is a file beside the one that is being made, or a part of it:
//
//	header   32 bytes of text (journalMagic), 32 bytes: the identity of the job's
//	         content, 32 bytes: that of its layout
//	records  16 bytes each, little-endian: part, block, CRC-32C of the block's
//	         bytes as they came, CRC-32C of both identities and the 12 bytes before
//
// A record is written after the block, by one write, and is never changed: a
// process that is killed leaves whole records, and at most one that is cut off.
// Of two for one block the later one counts; what is no record of this job is
// passed over, wherever it stands. Nothing is synced: what a crash of the system
// makes of either file is found out by reading the blocks again.
//
// The identities are of everything that says what is where, so that the records
// need not: names, hashes and offsets come from who reads the journal. Sizes
// follow from the hashes, and are no part of them: whom a part is asked of may not
// tell its size, or tell another, and that unmakes nothing.
const (
	journalMagic = "carton-oci partial, version 1\n\x00\x00"
	headerSize   = len(journalMagic) + 2*sha256.Size
	recordSize   = 16
	// maxAgain is how many claims of a journal are kept in memory for every block, on
	// average, and maxMore how many besides, before they are tidied.
	maxAgain, maxMore = 8, 1024
	// unsynced is the part of a record that says: a sync has failed.
	unsynced = 1<<32 - 1
)

// JournalFile is where a journal is kept.
type JournalFile = interface {
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
}

// Journal remembers what of a job has arrived. A nil Journal remembers nothing.
type Journal struct {
	f      JournalFile
	head   []byte
	claims []claim // of an earlier run: sorted, each block once
	other  otherJob
	synced bool // no sync has failed

	whole *Journal // where this is what that has of its part only, as part 0
	only  int

	mu      sync.Mutex
	off     int64
	arrived int64 // bytes of blocks that have arrived, those of unknown size as whole ones
}

// claim says that a block has arrived.
type claim struct{ part, block, crc uint32 }

// otherJob says of what other job a journal remembers something.
type otherJob uint8

const (
	noOther      otherJob = iota
	otherContent          // another model, or another choice of its members
	otherSizes            // the same, with other offsets
)

// OpenJournal reads the journal in f, and goes on with it if it is of the same
// job: parts that agree in Name, SHA256 and Offset, in the same order, in a file of
// the same Extent, and the same text in what. Of another job's it changes nothing:
// [Journal.Reset] does. A file that is anything else becomes an empty journal. Only
// f's own errors are errors.
func OpenJournal(f JournalFile, what string, job *Job) (*Journal, error) {
	j := &Journal{f: f, head: header(what, job), synced: true}
	got := make([]byte, headerSize)
	n, err := f.ReadAt(got, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	got = got[:n]
	if err := j.read(job.Parts); err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	switch {
	case string(got) == string(j.head):
		return j, f.Truncate(j.off)
	case j.arrived > 0: // the header is damaged, the records say whose they are
		return j, errors.Join(f.Truncate(j.off), j.writeHeader())
	case n < headerSize || string(got[:len(journalMagic)]) != journalMagic:
		return j, j.Reset()
	}
	theirs := &Journal{f: f, head: got}
	if err := theirs.read(nil); err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	content := len(journalMagic) + sha256.Size
	switch {
	case theirs.arrived == 0:
		return j, j.Reset()
	case string(got[:content]) == string(j.head[:content]):
		j.other = otherSizes
	default:
		j.other = otherContent
	}
	return j, nil
}

// Reset forgets what another job's journal remembers.
func (j *Journal) Reset() error {
	if err := j.f.Truncate(0); err != nil {
		return err
	}
	j.other, j.off, j.arrived = noOther, int64(headerSize), 0
	return j.writeHeader()
}

func (j *Journal) writeHeader() error {
	_, err := j.f.WriteAt(j.head, 0)
	return err
}

// Holds returns how many bytes it knows of, those that came twice twice.
func (j *Journal) Holds() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.arrived
}

// Distrust remembers that the files could not be brought to the disk. The system
// may have dropped what it could not write, and shows it as long as it is in
// memory: what another run reads of it, it writes again.
func (j *Journal) Distrust() error { return j.add(claim{part: unsynced}, 0) }

func (j *Journal) distrusted() bool {
	if j != nil && j.whole != nil {
		j = j.whole
	}
	return j != nil && !j.synced
}

// part returns what the journal has of one part, as the journal of a job of that
// part alone: what is added to it is added here.
func (j *Journal) part(i int) *Journal {
	if j == nil {
		return nil
	}
	return &Journal{whole: j, only: i}
}

// header makes a journal's header.
func header(what string, job *Job) []byte {
	content, layout := sha256.New(), sha256.New()
	fmt.Fprintf(content, "%q %d\n", what, len(job.Parts))
	fmt.Fprintf(layout, "%d\n", job.Extent)
	for i := range job.Parts {
		p := &job.Parts[i]
		fmt.Fprintf(content, "%q %s\n", p.Name, p.SHA256)
		fmt.Fprintf(layout, "%d\n", p.Offset)
	}
	return layout.Sum(content.Sum([]byte(journalMagic)))
}

// read reads the records.
func (j *Journal) read(parts []Part) error {
	most := maxMore
	for i := range parts {
		most += maxAgain * blocksOf(parts[i].Size)
	}
	j.off = int64(headerSize)
	r := io.NewSectionReader(j.f, j.off, math.MaxInt64-j.off)
	buf := make([]byte, 4096*recordSize)
	for more := true; more; {
		n, err := io.ReadFull(r, buf)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		more = err == nil
		for b := buf[:n]; len(b) >= recordSize; b = b[recordSize:] {
			j.off += recordSize
			c, ok := j.parse(b)
			if !ok {
				continue
			}
			if c.part == unsynced {
				j.synced = false
				continue
			}
			if int64(c.part) < int64(len(parts)) && int64(c.block) < int64(blocksOf(parts[c.part].Size)) {
				j.claims = append(j.claims, c)
				j.arrived += parts[c.part].blockSize(int(c.block))
			} else {
				j.arrived += BlockSize
			}
		}
		if len(j.claims) > most {
			j.tidy()
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

// record makes a record.
func (j *Journal) record(c claim) []byte {
	b := make([]byte, 0, recordSize)
	b = binary.LittleEndian.AppendUint32(b, c.part)
	b = binary.LittleEndian.AppendUint32(b, c.block)
	b = binary.LittleEndian.AppendUint32(b, c.crc)
	return binary.LittleEndian.AppendUint32(b, j.sum(b))
}

func (j *Journal) parse(b []byte) (claim, bool) {
	c := claim{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])}
	return c, binary.LittleEndian.Uint32(b[12:]) == j.sum(b[:12])
}

// sum binds a record to its job.
func (j *Journal) sum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(j.head[len(journalMagic):], castagnoli), castagnoli, b)
}

// of returns what an earlier run claims of a part, block by block.
func (j *Journal) of(part int) []claim {
	if j == nil {
		return nil
	}
	if j.whole != nil {
		return j.whole.of(j.only)
	}
	from := sort.Search(len(j.claims), func(i int) bool { return int64(j.claims[i].part) >= int64(part) })
	to := sort.Search(len(j.claims), func(i int) bool { return int64(j.claims[i].part) > int64(part) })
	return j.claims[from:to]
}

// add remembers a block of size bytes that is in its file.
func (j *Journal) add(c claim, size int64) error {
	if j == nil {
		return nil
	}
	if j.whole != nil {
		c.part = uint32(j.only) //nolint:gosec // an index of a list in memory
		return j.whole.add(c, size)
	}
	b := j.record(c)
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.f.WriteAt(b, j.off); err != nil {
		return err
	}
	j.off += recordSize
	j.arrived += size
	return nil
}

// Sentence says how one goes on after an error: "run it again to go on: 1.2 GB
// of 4.0 GB are there (NAME)"; "" where another run has nothing to go on with.
func (r Result) Sentence(name string) string {
	if r.There <= 0 {
		return ""
	}
	return fmt.Sprintf("run it again to go on: %s of %s are there (%s)", errtext.Size(r.There), errtext.Size(r.Total),
		name)
}
