package download_test

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"

	"github.com/carton-oci/carton-oci/internal/download"
)

// record makes a record of a journal.
func record(part, block, crc uint32) []byte {
	var b [16]byte
	binary.LittleEndian.PutUint32(b[:], part)
	binary.LittleEndian.PutUint32(b[4:], block)
	binary.LittleEndian.PutUint32(b[8:], crc)
	binary.LittleEndian.PutUint32(b[12:], crc32.Checksum(b[:12], crc32.MakeTable(crc32.Castagnoli)))
	return b[:]
}

// A journal is of one job: of any that differs in what is where it is none.
func TestAJournalIsOfOneJob(t *testing.T) {
	p := newPlace(mib, 2*mib)
	f := &memory{}
	j := p.journal(t, f)
	if !j.Empty() {
		t.Error("a new journal is not empty")
	}
	f.b = append(f.b, record(1, 1, 5)...)
	written := f.b
	parts := func(change func(parts []download.Part)) []download.Part {
		list := append([]download.Part(nil), p.parts...)
		change(list)
		return list
	}
	for name, c := range map[string]struct {
		what  string
		parts []download.Part
		same  bool
	}{
		"the same":             {"test", p.parts, true},
		"other ways to get it": {"test", parts(func(l []download.Part) { l[0].Ranged, l[0].Elsewhere, l[0].Bundle = false, true, 4 }), true},
		"another model":        {"tset", p.parts, false},
		"another name":         {"test", parts(func(l []download.Part) { l[0].Name = "x" }), false},
		"another size":         {"test", parts(func(l []download.Part) { l[0].Size++ }), false},
		"another hash":         {"test", parts(func(l []download.Part) { l[0].SHA256 = l[1].SHA256 }), false},
		"another place":        {"test", parts(func(l []download.Part) { l[1].Offset += 4096 }), false},
		"another order":        {"test", parts(func(l []download.Part) { l[0], l[1] = l[1], l[0] }), false},
		"one less":             {"test", p.parts[:1], false},
	} {
		g := &memory{b: append([]byte(nil), written...)}
		j, err := download.OpenJournal(g, c.what, c.parts)
		if err != nil {
			t.Fatal(err)
		}
		if j.Empty() == c.same {
			t.Errorf("%s: empty: %v", name, j.Empty())
		}
		if !c.same && len(g.b) != 64 {
			t.Errorf("%s: it holds %d bytes, want only its header", name, len(g.b))
		}
	}
}

func TestJournalErrors(t *testing.T) {
	broken := errors.New("broken")
	f := &memory{err: func(int64, int) error { return broken }}
	if _, err := download.OpenJournal(f, "test", nil); !errors.Is(err, broken) {
		t.Errorf("got %v, want that it can't be written", err)
	}
}

// A journal that is larger than any could be is read only so far.
func TestAnEndlessJournal(t *testing.T) {
	p := newPlace(mib)
	f := &memory{}
	p.journal(t, f)
	for range 100_000 {
		f.b = append(f.b, record(0, 0, 1)...)
	}
	if p.journal(t, f); len(f.b) > 64+16*(1024+8) {
		t.Errorf("%d bytes of it were kept", len(f.b))
	}
}

func TestSentence(t *testing.T) {
	for _, c := range []struct {
		there, total int64
		want         string
	}{
		{0, 100, ""},
		{download.BlockSize - 1, 4e9, ""},
		{1_234_000_000, 4e9, "run it again to go on: 1.2 GB of 4 GB are there (m.partial)"},
		{2 << 20, 999_949, "run it again to go on: 2.1 MB of 999.9 kB are there (m.partial)"},
		{5e6, 999_950_000, "run it again to go on: 5 MB of 1 GB are there (m.partial)"},
		{1 << 20, 7, "run it again to go on: 1 MB of 7 bytes are there (m.partial)"},
	} {
		if got := (download.Result{There: c.there, Total: c.total}).Sentence("m.partial"); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// Whatever a journal holds: it is read without a panic, claims no block that is
// not there and none twice, can be added to, and never keeps a run from the right
// bytes.
func FuzzJournal(f *testing.F) {
	p := newPlace(300, 100, 0)
	parts := append([]download.Part{{Name: "large", Size: 3*mib + 5}}, p.parts...)
	var heads []string
	for _, list := range [][]download.Part{p.parts, parts} {
		file := &memory{}
		if _, err := download.OpenJournal(file, "test", list); err != nil {
			f.Fatal(err)
		}
		heads = append(heads, string(file.b))
	}
	f.Add([]byte("garbage"), false)
	for _, r := range [][]byte{
		nil, record(0, 0, 1), record(0, 2, 1), record(0, 3, 1), record(0, 4, 1), record(1, 0, 1), record(2, 0, 1), record(3, 0, 1),
		record(1<<31, 1<<31, 1), record(^uint32(0), ^uint32(0), 1),
	} {
		f.Add(r, true)
		f.Add(append(append(append(r[:len(r):len(r)], record(0, 0, 9)...), r...), record(0, 1, 9)[:7]...), true)
	}
	f.Fuzz(func(t *testing.T, b []byte, headed bool) {
		for i, list := range [][]download.Part{p.parts, parts} {
			file := &memory{b: append([]byte(nil), b...)}
			if headed {
				file.b = append([]byte(heads[i]), b...)
			}
			j, err := download.OpenJournal(file, "test", list)
			if err != nil {
				t.Fatal(err)
			}
			for n := range list {
				last := -1
				for _, block := range j.Claims(n) {
					if block <= last || int64(block)*mib >= list[n].Size {
						t.Errorf("part %d of %d bytes: block %d is claimed after %d", n, list[n].Size, block, last)
					}
					last = block
				}
			}
			if i > 0 {
				continue
			}
			q := p.again()
			q.files = []*memory{{b: content(3, 300)}, {}, {}}
			if _, err := download.Run(t.Context(), q.job(), download.Options{Journal: j}); err != nil {
				t.Fatal(err)
			}
			q.complete(t)
			third := q.again()
			res, err := download.Run(t.Context(), third.job(), download.Options{Journal: third.journal(t, file)})
			if err != nil || res.Resumed != 400 {
				t.Errorf("what was remembered then: got %+v, %v", res, err)
			}
		}
	})
}
