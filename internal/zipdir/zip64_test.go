package zipdir_test

import (
	"io"
	"math"
	"slices"
	"testing"

	"github.com/carton-oci/carton-oci/internal/zipdir"
)

// sparse is a file of zeros but for some pieces.
type sparse struct {
	size   int64
	pieces map[int64][]byte // by offset
}

func (s *sparse) ReadAt(p []byte, off int64) (int, error) {
	if off >= s.size {
		return 0, io.EOF
	}
	clear(p)
	n := int(min(int64(len(p)), s.size-off))
	for at, piece := range s.pieces {
		if at < off+int64(n) && off < at+int64(len(piece)) {
			copy(p[max(0, at-off):n], piece[max(0, off-at):])
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// TestTorchsZip64: a storage of 5 GiB and a file behind it, with the bytes that
// torch's zip writer (third_party/miniz-3.0.2, mz_zip_writer_add_mem_ex_v2 at
// v2.9.1) writes for them: a local zip64 field with the size, a zero and, past
// 4 GiB, the offset; a descriptor of 24 bytes; zeros in the local header proper.
func TestTorchsZip64(t *testing.T) {
	const size, crc = 5 << 30, 0xdeadbeef
	s := &sparse{pieces: map[int64][]byte{}}
	add := func(b []byte) {
		s.pieces[s.size] = b
		s.size += int64(len(b))
	}
	local := func(name, zip64 string) []byte {
		extra := field(1, zip64) + field(0x4246, "ZZZ")
		h := append([]byte("PK\x03\x04\x00\x00\x08\x08"), make([]byte, 18)...)
		h = le.AppendUint16(le.AppendUint16(h, uint16(len(name))), uint16(len(extra)))
		return append(append(h, name...), extra...)
	}
	after := func(n uint64) []byte {
		return append(le.AppendUint32([]byte("PK\x07\x08"), crc), u64(n, n)...)
	}
	var directory []byte
	central := func(name, zip64 string, size, offset uint64) {
		d := append([]byte("PK\x01\x02\x00\x00\x00\x00\x08\x08"), make([]byte, 6)...)
		for _, v := range []uint64{crc, min(size, math.MaxUint32), min(size, math.MaxUint32)} {
			d = le.AppendUint32(d, uint32(v))
		}
		d = le.AppendUint16(le.AppendUint16(d, uint16(len(name))), uint16(4+len(zip64)))
		d = append(d, make([]byte, 10)...)
		d = le.AppendUint32(d, uint32(min(offset, math.MaxUint32)))
		directory = append(append(append(directory, d...), name...), field(1, zip64)...)
	}
	add(local("r/weight_0", u64(size, 0)))
	data := s.size
	s.size += size
	add(after(size))
	second := uint64(s.size)
	add(local("r/byteorder", u64(second)))
	add([]byte("little"))
	add(after(6))
	central("r/weight_0", u64(size, size), size, 0)
	central("r/byteorder", u64(second), 6, second)
	at := uint64(s.size)
	add(directory)
	end := slices.Concat([]byte("PK\x06\x06"), []byte(u64(44)), make([]byte, 12), []byte(u64(2, 2, uint64(len(directory)), at)))
	add(slices.Concat(end, []byte("PK\x06\x07\x00\x00\x00\x00"), []byte(u64(uint64(s.size))), []byte{1, 0, 0, 0}))
	add(slices.Concat([]byte("PK\x05\x06\x00\x00\x00\x00\x02\x00\x02\x00"), le.AppendUint32(nil, uint32(len(directory))), []byte("\xff\xff\xff\xff\x00\x00")))

	r := &counting{r: s}
	d, err := zipdir.Read(r, s.size, plain)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Check(r); err != nil {
		t.Fatal(err)
	}
	e := d.Files[0]
	if at, err := e.Check(r); err != nil || e.Size != size || at != data || e.CRC != crc {
		t.Errorf("got %d bytes at %d, %v, want %d at %d", e.Size, at, err, int64(size), data)
	}
	if e := d.Files[1]; e.Size != 6 || e.Offset != int64(second) {
		t.Errorf("got %d bytes behind %d, want 6 behind %d", e.Size, e.Offset, second)
	}
	if r.reads > 6 || r.most > zipdir.TailBytes {
		t.Errorf("%d reads of at most %d bytes", r.reads, r.most)
	}
}
