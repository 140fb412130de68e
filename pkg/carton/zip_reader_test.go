package carton_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// countingReader counts what is read, and fails inside of an extent.
type countingReader struct {
	r          io.ReaderAt
	calls, n   atomic.Int64
	from, to   int64
	violations atomic.Int64
}

func (c *countingReader) ReadAt(b []byte, off int64) (int, error) {
	c.calls.Add(1)
	c.n.Add(int64(len(b)))
	if off < c.to && off+int64(len(b)) > c.from {
		c.violations.Add(1)
		return 0, errors.New("read inside a member")
	}
	return c.r.ReadAt(b, off)
}

// holed is the zip of a plan, with zeros for data that is not given.
type holed struct {
	size   int64
	pieces map[int64][]byte
}

func (h *holed) ReadAt(b []byte, off int64) (int, error) {
	clear(b)
	for at, piece := range h.pieces {
		if off < at+int64(len(piece)) && at < off+int64(len(b)) {
			if at >= off {
				copy(b[at-off:], piece)
			} else {
				copy(b, piece[off-at:])
			}
		}
	}
	if off+int64(len(b)) > h.size {
		return int(h.size - off), io.EOF
	}
	return len(b), nil
}

// hugeCarton is a zip whose one model file has size bytes, all zero.
func hugeCarton(t *testing.T, size int64) (r *holed, from, to int64) {
	t.Helper()
	small := map[string]string{
		carton.InfoName:     minimalInfo,
		carton.ManifestName: manifestOf(carton.InfoName, minimalInfo, "model/huge", "any hash"),
	}
	members := []carton.Member{{Path: "model/huge", Size: size}}
	for p, s := range small {
		members = append(members, carton.Member{Path: p, Size: int64(len(s))})
	}
	plan, err := carton.NewPlan(members)
	if err != nil {
		t.Fatal(err)
	}
	h := &holed{size: plan.Size(), pieces: map[int64][]byte{}}
	for i := range plan.Len() {
		p := plan.Member(i).Path
		if err := plan.SetCRC(p, crc(small[p])); err != nil {
			t.Fatal(err)
		}
		header, err := plan.Header(i)
		if err != nil {
			t.Fatal(err)
		}
		off, _, _ := plan.Extent(p)
		h.pieces[off-int64(len(header))] = append(header, small[p]...)
	}
	tail, err := plan.Tail()
	if err != nil {
		t.Fatal(err)
	}
	h.pieces[plan.Size()-int64(len(tail))] = tail
	from, n, _ := plan.Extent("model/huge")
	return h, from, from + n
}

// Opening reads the directory, headers and small files, whatever the size, and
// over the network not even all headers.
func TestOpeningReadsNoContent(t *testing.T) {
	h, from, to := hugeCarton(t, 100<<30)
	c := &countingReader{r: h, from: from, to: to - 1<<17} // the tail of the zip is read at once
	src, err := carton.NewReader(c, h.size)
	if err != nil {
		t.Fatal(err)
	}
	if n := c.n.Load(); n > 110_000 {
		t.Errorf("opening read %d bytes", n)
	}
	members, err := src.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if m := members[1]; m.Size != 100<<30 {
		t.Errorf("got %+v, want 100 GiB", m)
	}

	c = &countingReader{r: h}
	if _, err := carton.NewLazyReader(c, h.size); err != nil {
		t.Fatal(err)
	}
	if n := c.calls.Load(); n != 1 {
		t.Errorf("opening lazily read %d times, want once", n)
	}
}

// Python before 3.11.4, asked for zip64 where it is not needed, repeats the
// sizes in the local header's zip64 field: nothing there can mislead anybody.
func TestLocalZip64FieldMayRepeatTheSizes(t *testing.T) {
	z := good()
	z.files[0].local.extra = extra64(7, 7)
	src, err := openBoth(t, z.bytes())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := carton.ReadMember(t.Context(), src, "model/a", 100); err != nil || string(got) != "weights" {
		t.Errorf("got %q, %v", got, err)
	}
}

// A lazy reader still checks a member's local header, when it is opened.
func TestLazyReaderChecksLocalHeaders(t *testing.T) {
	z := good()
	z.files[0].local.name = "model/b"
	b := z.bytes()
	src, err := carton.NewLazyReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := carton.ReadMember(t.Context(), src, carton.InfoName, 1000); err != nil {
		t.Errorf("another member: %v", err)
	}
	_, err = src.Open(t.Context(), "model/a")
	checkError(t, err, carton.ErrFormat, "another name")
	_, err = src.OpenRange(t.Context(), "model/a", 0, 1)
	checkError(t, err, carton.ErrFormat, "another name")
}

// Who reads a stored member to its end and hashes it himself learns of a wrong
// CRC all the same.
func TestStoredMembersCRCIsCheckedByARangeOfAll(t *testing.T) {
	z := good()
	z.file("model/a").both(func(h *rawHeader) { h.crc++ })
	b := z.bytes()
	src, err := carton.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := src.OpenRange(t.Context(), "model/a", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(io.Discard, r)
	checkError(t, err, carton.ErrChecksum, "CRC")
}

func TestLazyReaderReadsSymlinksWhenAsked(t *testing.T) {
	b := linked("model/l", "a").bytes()
	src, err := carton.NewLazyReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	got, err := carton.ReadMember(t.Context(), src, "model/l", 100) // before Members
	if err != nil || string(got) != "weights" {
		t.Errorf("got %q, %v; want the target's content", got, err)
	}
	members, err := src.Members(t.Context())
	if err != nil || members[1].Target != "a" || members[1].Size != 7 {
		t.Errorf("got %+v, %v; want a symlink to a", members, err)
	}
}

// What Members returns is the caller's.
func TestMembersAreACopy(t *testing.T) {
	src, err := openBoth(t, good().bytes())
	if err != nil {
		t.Fatal(err)
	}
	first, _ := src.Members(t.Context())
	first[0].Path = "changed"
	if second, _ := src.Members(t.Context()); second[0].Path != carton.InfoName {
		t.Errorf("got %q, want %q", second[0].Path, carton.InfoName)
	}
}

func TestPlaces(t *testing.T) {
	z := zipOf("model/stored", "a", "model/deflated", "b", "model/zstd", "c", "model/linked", "d", "model/empty", "")
	z.file("model/deflated").compress(t, 8)
	z.file("model/zstd").compress(t, 93)
	z.files = slices.DeleteFunc(z.files, func(f *rawFile) bool { return f.entry.name == "model/linked" })
	z.add(carton.LinksName, "version = 1\n[urls]\n"+hashOf("d")+" = [\"https://example.com/d\"]\n")
	b := z.bytes()
	src, err := carton.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	members, err := src.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range members {
		got = append(got, fmt.Sprintf("%s %s %d", m.Path, m.Place, m.Size))
	}
	want := []string{
		"model/deflated compressed 1", "model/empty stored 0", "model/linked linked -1",
		"model/stored stored 1", "model/zstd compressed 1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if src.Links() == nil || len(src.Links().URLs) != 1 {
		t.Errorf("got LINKS %v, want one URL", src.Links())
	}
	_, err = src.Open(t.Context(), "model/linked")
	checkError(t, err, carton.ErrLink, "model/linked: is linked")
	_, err = src.OpenRange(t.Context(), "model/linked", 0, 1)
	checkError(t, err, carton.ErrLink, "is linked")
}

// The zip wins over LINKS.
func TestMemberInZipAndLinks(t *testing.T) {
	z := good()
	z.add(carton.LinksName, "version = 1\n[urls]\n"+hashOf("weights")+" = [\"https://example.com/a\"]\n")
	src, err := openBoth(t, z.bytes())
	if err != nil {
		t.Fatal(err)
	}
	if b, err := carton.ReadMember(t.Context(), src, "model/a", 100); err != nil || string(b) != "weights" {
		t.Errorf("got %q, %v", b, err)
	}
}

func TestOpenWhatIsNot(t *testing.T) {
	src, err := openBoth(t, good().bytes())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"model/b", "model", "", "model/a/", "/model/a", carton.LinksName} {
		_, err := src.Open(t.Context(), path)
		checkError(t, err, fs.ErrNotExist, "not in the carton")
		_, err = src.OpenRange(t.Context(), path, 0, -1)
		checkError(t, err, fs.ErrNotExist, "not in the carton")
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := src.Open(gone, "model/a"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestReadMemberLimit(t *testing.T) {
	src, err := openBoth(t, good().bytes())
	if err != nil {
		t.Fatal(err)
	}
	if b, err := carton.ReadMember(t.Context(), src, "model/a", 7); err != nil || string(b) != "weights" {
		t.Errorf("got %q, %v", b, err)
	}
	_, err = carton.ReadMember(t.Context(), src, "model/a", 6)
	checkError(t, err, carton.ErrLimit, "larger than 6 bytes")
	if b, err := carton.ReadMember(t.Context(), src, carton.ManifestName, 1000); err != nil || !bytes.Equal(b, src.Manifest().Bytes()) {
		t.Errorf("MANIFEST: got %q, %v", b, err)
	}
}

// An error of what lies below is not mistaken for a fault of the carton.
func TestReadErrorsComeThrough(t *testing.T) {
	for _, method := range []uint16{0, 8, 93} {
		z := zipOf("model/a", strings.Repeat("0123456789", 100_000), carton.InfoName, minimalInfo)
		z.files[0].compress(t, method)
		b := z.bytes()
		c := &countingReader{r: bytes.NewReader(b)}
		src, err := carton.NewReader(c, int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		c.from, c.to = 60, int64(len(b))
		r, err := src.Open(t.Context(), "model/a")
		if err == nil {
			_, err = io.Copy(io.Discard, r)
		}
		if err == nil || errors.Is(err, carton.ErrChecksum) || !strings.Contains(err.Error(), "read inside a member") {
			t.Errorf("method %d: got %v, want the reader's error", method, err)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	b := linked("model/l", "a").bytes()
	src, err := carton.NewLazyReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := readMembers(t.Context(), src); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestOpenByName(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "m.carton", string(good().bytes()))
	src, err := carton.Open(filepath.Join(dir, "m.carton"))
	if err != nil {
		t.Fatal(err)
	}
	if err := src.Close(); err != nil {
		t.Error(err)
	}
	if err := readMembers(t.Context(), src); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after Close: got %v, want %v", err, os.ErrClosed)
	}
	if _, err = carton.Open(filepath.Join(dir, "none.carton")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: got %v", err)
	}
	_, err = carton.Open(os.DevNull)
	checkError(t, err, carton.ErrFormat, "neither a file nor a folder")
	writeFile(t, dir, "no.carton", "no zip")
	_, err = carton.Open(filepath.Join(dir, "no.carton"))
	checkError(t, err, carton.ErrFormat, "not a zip")
}

// zipOfMany is a zip of n empty members, as a plan lays it out.
func zipOfMany(t *testing.T, n int) []byte {
	t.Helper()
	members := make([]carton.Member, n, n+1)
	entries := make([]carton.Entry, n)
	for i := range n {
		members[i].Path = fmt.Sprintf("model/%03d/%06d", i%1000, i)
		entries[i] = carton.Entry{Path: members[i].Path, Hash: someHash}
	}
	manifest, err := carton.NewManifest(entries)
	if err != nil {
		t.Fatal(err)
	}
	raw := manifest.Bytes()
	plan, err := carton.NewPlan(append(members, carton.Member{Path: carton.ManifestName, Size: int64(len(raw))}))
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 0, plan.Size())
	for i := range plan.Len() {
		crc, path := uint32(0), plan.Member(i).Path
		if path == carton.ManifestName {
			crc = crc32.ChecksumIEEE(raw)
		}
		if err := plan.SetCRC(path, crc); err != nil {
			t.Fatal(err)
		}
		h, err := plan.Header(i)
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, h...)
	}
	tail, err := plan.Tail()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(b, raw, tail)
}

func TestManyMembersInBoundedMemory(t *testing.T) {
	testenv.Heavy(t)
	b := zipOfMany(t, carton.MaxMembers)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	src, err := carton.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 256<<20 {
		t.Errorf("opening %d members allocated %d MiB", carton.MaxMembers, n>>20)
	}
	if members, err := src.Members(t.Context()); err != nil || len(members) != carton.MaxMembers {
		t.Errorf("got %d members, %v", len(members), err)
	}
}
