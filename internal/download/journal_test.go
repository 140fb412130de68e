package download_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"

	"github.com/carton-oci/carton-oci/internal/download"
)

// record makes a record of a journal with the header head.
func record(head []byte, part, block, crc uint32) []byte {
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	var b [16]byte
	binary.LittleEndian.PutUint32(b[:], part)
	binary.LittleEndian.PutUint32(b[4:], block)
	binary.LittleEndian.PutUint32(b[8:], crc)
	sum := crc32.Update(crc32.Checksum(head[32:96], castagnoli), castagnoli, b[:12])
	binary.LittleEndian.PutUint32(b[12:], sum)
	return b[:]
}

// A journal is of one job: of any that differs in what is where it is none, and
// stays as it is until it is reset.
func TestAJournalIsOfOneJob(t *testing.T) {
	p := newPlace(mib, 2*mib)
	f := &memory{}
	j := p.journal(t, f)
	if j.Holds() != 0 {
		t.Error("a new journal is not empty")
	}
	f.b = append(f.b, record(f.b, 1, 1, 5)...)
	written := f.b
	parts := func(change func(parts []download.Part)) []download.Part {
		list := append([]download.Part(nil), p.parts...)
		change(list)
		return list
	}
	for name, c := range map[string]struct {
		what   string
		parts  []download.Part
		extent int64
		claims int
		other  bool
	}{
		"the same":             {"test", p.parts, 0, 1, false},
		"other ways to get it": {"test", parts(func(l []download.Part) { l[0].Ranged, l[0].Elsewhere, l[0].Bundle = false, true, 4 }), 0, 1, false},
		"another size":         {"test", parts(func(l []download.Part) { l[0].Size++ }), 0, 1, false},
		"a size of a liar":     {"test", parts(func(l []download.Part) { l[1].Size = 5 }), 0, 0, false},
		"an unknown size":      {"test", parts(func(l []download.Part) { l[1].Size = -1 }), 0, 0, false},
		"another model":        {"tset", p.parts, 0, 0, true},
		"another name":         {"test", parts(func(l []download.Part) { l[0].Name = "x" }), 0, 0, true},
		"another hash":         {"test", parts(func(l []download.Part) { l[0].SHA256 = l[1].SHA256 }), 0, 0, true},
		"another place":        {"test", parts(func(l []download.Part) { l[1].Offset += 4096 }), 0, 0, true},
		"another file":         {"test", p.parts, 5, 0, true},
		"another order":        {"test", parts(func(l []download.Part) { l[0], l[1] = l[1], l[0] }), 0, 0, true},
		"one less":             {"test", p.parts[:1], 0, 0, true},
	} {
		g := &memory{b: append([]byte(nil), written...)}
		j, err := download.OpenJournal(g, c.what, &download.Job{Parts: c.parts, Extent: c.extent})
		if err != nil {
			t.Fatal(err)
		}
		claims := 0
		for i := range c.parts {
			claims += len(j.Claims(i))
		}
		if claims != c.claims || (j.Holds() == 0) != c.other || !bytes.Equal(g.b, written) {
			t.Errorf("%s: %d claims, want %d; it holds %d; %d bytes", name, claims, c.claims, j.Holds(), len(g.b))
		}
		if err := j.Reset(); err != nil || j.Holds() != 0 || len(g.b) != 96 || bytes.Equal(g.b, written[:96]) == c.other {
			t.Errorf("%s: it was reset: it holds %d; %d bytes, %v", name, j.Holds(), len(g.b), err)
		}
	}
}

// What is no record is passed over, and a header that is damaged is made again: no
// other record suffers.
func TestADamagedJournal(t *testing.T) {
	p := newPlace(9 * mib)
	f := &memory{}
	p.journal(t, f)
	head := append([]byte(nil), f.b...)
	for i := range uint32(9) {
		f.b = append(f.b, record(head, 0, i, 5)...)
	}
	for name, c := range map[string]struct {
		spoil func(b []byte) []byte
		want  int
	}{
		"a byte of the text":     {func(b []byte) []byte { b[3] ^= 1; return b }, 9},
		"a byte of the identity": {func(b []byte) []byte { b[40] ^= 1; return b }, 9},
		"no header":              {func(b []byte) []byte { clear(b[:96]); return b }, 9},
		"the first record":       {func(b []byte) []byte { b[96] ^= 1; return b }, 8},
		"three in the middle":    {func(b []byte) []byte { clear(b[96+32 : 96+80]); return b }, 6},
		"a record is cut off":    {func(b []byte) []byte { return b[:len(b)-3] }, 8},
		"zeros at the end":       {func(b []byte) []byte { return append(b, make([]byte, 4100)...) }, 9},
	} {
		g := &memory{b: c.spoil(append([]byte(nil), f.b...))}
		if got := len(p.journal(t, g).Claims(0)); got != c.want {
			t.Errorf("%s: %d claims, want %d", name, got, c.want)
		}
		if got := len(p.journal(t, g).Claims(0)); got != c.want || !bytes.Equal(g.b[:96], head) {
			t.Errorf("%s: %d claims when it is opened again, want %d, and the header", name, got, c.want)
		}
	}
}

func TestJournalErrors(t *testing.T) {
	broken := errors.New("broken")
	f := &memory{err: func(int64, int) error { return broken }}
	if _, err := download.OpenJournal(f, "test", &download.Job{}); !errors.Is(err, broken) {
		t.Errorf("got %v, want that it can't be written", err)
	}
}

// A journal that is larger than any could be costs no memory, and what it says last
// counts.
func TestAnEndlessJournal(t *testing.T) {
	p := newPlace(mib)
	f := &memory{}
	p.journal(t, f)
	head := f.b[:96:96]
	for range 100_000 {
		f.b = append(f.b, record(head, 0, 0, 1)...)
	}
	f.b = append(f.b, record(head, 0, 0, crc32.Checksum(p.content[0], crc32.MakeTable(crc32.Castagnoli)))...)
	j := p.journal(t, f)
	if j.ClaimsKept() > 20_000 {
		t.Errorf("%d claims are kept in memory", j.ClaimsKept())
	}
	p.files[0].b = append([]byte(nil), p.content[0]...)
	if res, err := p.run(t, download.Options{Journal: j}); err != nil || res.Resumed != mib {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestSentence(t *testing.T) {
	for _, c := range []struct {
		there, total int64
		want         string
	}{
		{0, 100, ""},
		{1, 4e9, "run it again to go on: 1 B of 4.0 GB are there (m.partial)"},
		{1_234_000_000, 4e9, "run it again to go on: 1.2 GB of 4.0 GB are there (m.partial)"},
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
	var heads [][]byte
	for _, list := range [][]download.Part{p.parts, parts} {
		file := &memory{}
		if _, err := download.OpenJournal(file, "test", &download.Job{Parts: list}); err != nil {
			f.Fatal(err)
		}
		heads = append(heads, file.b)
	}
	f.Add([]byte("garbage"), false)
	for _, r := range [][]byte{
		nil, record(heads[0], 0, 0, 1), record(heads[0], 0, 2, 1), record(heads[0], 0, 3, 1), record(heads[0], 0, 4, 1), record(heads[0], 1, 0, 1), record(heads[0], 2, 0, 1), record(heads[0], 3, 0, 1),
		record(heads[0], 1<<31, 1<<31, 1), record(heads[0], ^uint32(0), ^uint32(0), 1),
	} {
		f.Add(r, true)
		f.Add(append(append(append(r[:len(r):len(r)], record(heads[0], 0, 0, 9)...), r...), record(heads[0], 0, 1, 9)[:7]...), true)
	}
	f.Fuzz(func(t *testing.T, b []byte, headed bool) {
		for i, list := range [][]download.Part{p.parts, parts} {
			file := &memory{b: append([]byte(nil), b...)}
			if headed {
				file.b = append(append([]byte(nil), heads[i]...), b...)
			}
			j, err := download.OpenJournal(file, "test", &download.Job{Parts: list})
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
