package carton_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// A member of bigSize zero bytes: over 4 GiB, so that its sizes, and the offsets
// of all behind it, need zip64. Its sums are from
// head -c 4294967301 /dev/zero | sha256sum.
const (
	bigSize = 4<<30 + 5
	bigHash = "709fc0b74f7c916cedccb212d681c035f36ffbb31ebfe806eb40c31592744eb5"
	bigCRC  = 0xb1c2a1a3
)

// sparseCarton writes a carton with a member of bigSize bytes whose zeros take
// no room on the disk.
func sparseCarton(t *testing.T) string {
	t.Helper()
	small := []byte("behind 4 GiB")
	manifest, err := carton.NewManifest([]carton.Entry{
		{Path: "carton.toml", Hash: cartontest.Bytes(cartontest.Info).Hash()},
		{Path: "model/a", Hash: cartontest.Bytes(nil).Hash()},
		{Path: "model/big", Hash: bigHash},
		{Path: "model/z", Hash: cartontest.Bytes(small).Hash()},
	})
	if err != nil {
		t.Fatal(err)
	}
	data := map[string][]byte{"carton.toml": []byte(cartontest.Info), "model/a": nil, "model/z": small, "MANIFEST": manifest.Bytes()}
	members := []carton.Member{{Path: "model/big", Size: bigSize}}
	for p, b := range data {
		members = append(members, carton.Member{Path: p, Size: int64(len(b))})
	}
	plan, err := carton.NewPlan(members)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "big.carton"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	writePlan(t, f, plan, func(path string) ([]byte, uint32) {
		if path == "model/big" {
			return nil, bigCRC
		}
		return data[path], crc32.ChecksumIEEE(data[path])
	})
	return f.Name()
}

// writePlan writes the zip of a plan. data gives a member's content, which may
// be nil for a hole, and its CRC.
func writePlan(t *testing.T, f *os.File, plan *carton.Plan, data func(path string) ([]byte, uint32)) {
	t.Helper()
	write := func(b []byte, off int64) {
		if _, err := f.WriteAt(b, off); err != nil {
			t.Fatal(err)
		}
	}
	for i := range plan.Len() {
		path := plan.Member(i).Path
		b, crc := data(path)
		if err := plan.SetCRC(path, crc); err != nil {
			t.Fatal(err)
		}
		h, err := plan.Header(i)
		if err != nil {
			t.Fatal(err)
		}
		off, _, _ := plan.Extent(path)
		write(h, off-int64(len(h)))
		write(b, off)
	}
	tail, err := plan.Tail()
	if err != nil {
		t.Fatal(err)
	}
	write(tail, plan.Size()-int64(len(tail)))
	if fi, err := f.Stat(); err != nil || fi.Size() != plan.Size() {
		t.Fatalf("the file has %v bytes, %v, the plan %d", fi.Size(), err, plan.Size())
	}
}

func TestMemberOver4GiB(t *testing.T) {
	testenv.Heavy(t)
	name := sparseCarton(t)
	t.Run("Go", func(t *testing.T) { goReads(t, name, 5, "model/z", "behind 4 GiB") })
	t.Run("carton", func(t *testing.T) { cartonReads(t, name, 4, "model/z", "behind 4 GiB") })
	t.Run("Python", func(t *testing.T) { pythonReads(t, name, 5, "model/z", "behind 4 GiB", false) })
	t.Run("unzip", func(t *testing.T) { unzipReads(t, name, 5, "model/z", "behind 4 GiB", false) })
	t.Run("jar", func(t *testing.T) { jarReads(t, name, 5, "model/z", "behind 4 GiB") })
}

func TestManyMembers(t *testing.T) {
	testenv.Heavy(t)
	const n = 70_000
	data := []byte("x")
	var members []carton.Member
	entries := []carton.Entry{{Path: "carton.toml", Hash: cartontest.Bytes(cartontest.Info).Hash()}}
	for i := range n {
		p := fmt.Sprintf("model/%d/%d", i%100, i)
		members = append(members, carton.Member{Path: p, Size: 1})
		entries = append(entries, carton.Entry{Path: p, Hash: cartontest.Bytes(data).Hash()})
	}
	manifest, err := carton.NewManifest(entries)
	if err != nil {
		t.Fatal(err)
	}
	other := map[string][]byte{"carton.toml": []byte(cartontest.Info), "MANIFEST": manifest.Bytes()}
	for p, b := range other {
		members = append(members, carton.Member{Path: p, Size: int64(len(b))})
	}
	plan, err := carton.NewPlan(members)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "many.carton"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	writePlan(t, f, plan, func(path string) ([]byte, uint32) {
		b := data
		if strings.HasPrefix(path, "MANIFEST") || path == "carton.toml" {
			b = other[path]
		}
		return b, crc32.ChecksumIEEE(b)
	})
	last := fmt.Sprintf("model/99/%d", n-1)
	t.Run("Go", func(t *testing.T) { goReads(t, f.Name(), n+2, last, "x") })
	t.Run("carton", func(t *testing.T) { cartonReads(t, f.Name(), n+1, last, "x") })
	t.Run("Python", func(t *testing.T) { pythonReads(t, f.Name(), n+2, last, "x", true) })
	t.Run("unzip", func(t *testing.T) { unzipReads(t, f.Name(), n+2, last, "x", true) })
	t.Run("jar", func(t *testing.T) { jarReads(t, f.Name(), n+2, last, "x") })
}

// Zip64 only where it is forced, to the byte and to the entry.
func TestZip64OnlyWhereForced(t *testing.T) {
	testenv.Heavy(t)
	const ones = 1<<32 - 1
	for _, size := range []int64{ones - 1, ones} {
		plan, header, central := planOfOne(t, size)
		extra := int(binary.LittleEndian.Uint16(header[28:]))
		version := binary.LittleEndian.Uint16(header[4:])
		if is64 := size == ones; is64 {
			want := append([]byte{1, 0, 16, 0}, bytes.Repeat([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}, 2)...)
			if got := header[len(header)-extra:][:20]; version != 45 || !bytes.Equal(got, want) {
				t.Errorf("%d bytes: version %d, extra %x, want 45, %x", size, version, got, want)
			}
			if got := central[47:67]; !bytes.Equal(got, want) {
				t.Errorf("%d bytes: central extra %x, want %x", size, got, want)
			}
		} else if version != 20 || binary.LittleEndian.Uint16(header[len(header)-extra:]) != 0xa11e {
			t.Errorf("%d bytes: version %d and %x, want 20 and padding only", size, version, header[30:])
		}
		// In both cases the directory begins beyond 4 GiB - 2.
		if end := central[len(central)-22-20:]; !bytes.HasPrefix(end, []byte("PK\x06\x07")) {
			t.Errorf("%d bytes: no zip64 locator", size)
		}
		off, _, _ := plan.Extent("a")
		if off != 4096 {
			t.Errorf("%d bytes: data begins at %d, want 4096", size, off)
		}
	}
	// The directory begins at the last offset that fits, and one byte further.
	for _, c := range []struct {
		size int64
		want bool
	}{{ones - 1 - 4096, false}, {ones - 4096, true}} {
		_, _, tail := planOfOne(t, c.size)
		if got := bytes.Contains(tail, []byte("PK\x06\x06")); got != c.want {
			t.Errorf("directory at %d: zip64 %v, want %v", c.size+4096, got, c.want)
		}
	}
	for _, n := range []int{65534, 65535} {
		members := make([]carton.Member, n)
		for i := range members {
			members[i].Path = fmt.Sprint(i)
		}
		plan, err := carton.NewPlan(members)
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if err := plan.SetCRC(fmt.Sprint(i), 0); err != nil {
				t.Fatal(err)
			}
		}
		tail, err := plan.Tail()
		if err != nil {
			t.Fatal(err)
		}
		got := bytes.Contains(tail[len(tail)-22-20:], []byte("PK\x06\x07"))
		if want := n == 65535; got != want {
			t.Errorf("%d members: zip64 %v, want %v", n, got, want)
		}
	}
}

func planOfOne(t *testing.T, size int64) (plan *carton.Plan, header, tail []byte) {
	t.Helper()
	plan, err := carton.NewPlan([]carton.Member{{Path: "a", Size: size}})
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.SetCRC("a", 0); err != nil {
		t.Fatal(err)
	}
	if header, err = plan.Header(0); err != nil {
		t.Fatal(err)
	}
	if tail, err = plan.Tail(); err != nil {
		t.Fatal(err)
	}
	return plan, header, tail
}

// A small member behind a large one has its offset, and nothing else, in zip64.
func TestZip64OfAnOffsetAlone(t *testing.T) {
	plan, err := carton.NewPlan([]carton.Member{{Path: "a", Size: bigSize}, {Path: "b", Size: 3}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"a", "b"} {
		if err := plan.SetCRC(p, 0); err != nil {
			t.Fatal(err)
		}
	}
	h, err := plan.Header(1)
	if err != nil {
		t.Fatal(err)
	}
	tail, err := plan.Tail()
	if err != nil {
		t.Fatal(err)
	}
	b := tail[46+1+20:] // the entry of a
	off, _, _ := plan.Extent("b")
	want := binary.LittleEndian.AppendUint64([]byte{1, 0, 8, 0}, uint64(off)-uint64(len(h)))
	if got := b[47:59]; !bytes.Equal(got, want) {
		t.Errorf("central extra: got %x, want %x", got, want)
	}
	if got := binary.LittleEndian.Uint16(h[30+1:]); got != 0xa11e {
		t.Errorf("the local header begins with the extra field %#x, want padding", got)
	}
	for what, v := range map[string]uint16{
		"local": binary.LittleEndian.Uint16(h[4:]), "central": binary.LittleEndian.Uint16(b[6:]),
	} {
		if v != 45 {
			t.Errorf("%s header needs version %d, want 45 in both", what, v)
		}
	}
}

// goReads, and the functions after it, want a zip with so many entries, one of
// which is small and has this content, to be good for a reader.
func goReads(t *testing.T, name string, entries int, path, want string) {
	t.Helper()
	z, err := zip.OpenReader(name)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	if len(z.File) != entries {
		t.Errorf("got %d entries, want %d", len(z.File), entries)
	}
	for _, f := range z.File {
		if f.UncompressedSize64 > 1<<30 {
			continue
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name == path && string(b) != want {
			t.Errorf("%s: got %q, want %q", path, b, want)
		}
	}
}

func cartonReads(t *testing.T, name string, members int, path, want string) {
	t.Helper()
	src, err := carton.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	all, err := src.Members(t.Context())
	if err != nil || len(all) != members {
		t.Errorf("got %d members, %v, want %d", len(all), err, members)
	}
	if got := content(t, src, path); string(got) != want {
		t.Errorf("%s: got %q, want %q", path, got, want)
	}
}

func pythonReads(t *testing.T, name string, entries int, path, want string, all bool) {
	t.Helper()
	const program = `
import sys, zipfile
z = zipfile.ZipFile(sys.argv[1])
if sys.argv[3] == "true" and z.testzip() is not None:
    sys.exit("testzip: " + z.testzip())
print(len(z.namelist()), z.read(sys.argv[2]).decode("utf-8"), end="")
`
	out := run(t, testenv.Program(t, "python3"), "-c", program, name, path, fmt.Sprint(all))
	if got := fmt.Sprintf("%d %s", entries, want); out != got {
		t.Errorf("got %q, want %q", out, got)
	}
}

func unzipReads(t *testing.T, name string, entries int, path, want string, all bool) {
	t.Helper()
	unzip := testenv.Program(t, "unzip")
	if all {
		run(t, unzip, "-tqq", name)
	}
	if got := run(t, unzip, "-p", name, path); got != want {
		t.Errorf("%s: got %q, want %q", path, got, want)
	}
	if got := strings.Count(run(t, unzip, "-Z1", name), "\n"); got != entries {
		t.Errorf("got %d entries, want %d", got, entries)
	}
}

func jarReads(t *testing.T, name string, entries int, path, want string) {
	t.Helper()
	jar := testenv.Program(t, "jar")
	if got := strings.Count(run(t, jar, "--list", "--file", name), "\n"); got != entries {
		t.Errorf("got %d entries, want %d", got, entries)
	}
	t.Chdir(t.TempDir())
	run(t, jar, "--extract", "--file", name, path)
	if b, err := os.ReadFile(filepath.FromSlash(path)); err != nil || string(b) != want {
		t.Errorf("%s: got %q, %v, want %q", path, b, err, want)
	}
}
