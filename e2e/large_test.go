package e2e

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
)

// The promise: memory and disk don't grow with the model. A carton with a member
// of 2 GiB travels both ways with one copy on disk, the output, and little
// memory.

const (
	largeSize    = 2 << 30
	largeMember  = "model/weights.safetensors"
	peakLimitMiB = 64
	// smallFile is what a file beside the output may have: a lock, a journal, a
	// remembered upload.
	smallFile = 1 << 20
)

func TestTwoGiB(t *testing.T) {
	u := newUser(t)
	sum := writeLarge(t, u.path("large.carton"))
	s := testregistry.Start(t, testregistry.Options{})
	ref := s.Host + "/org/large:1"

	w := startWatch(t, u.dir, u.tmp, u.cache)
	push := u.must(t, "push", "--debug", "large.carton", ref)
	for name, size := range w.end() {
		if size > smallFile && name != u.path("large.carton") {
			t.Errorf("push: wrote %s of %d bytes, want no copy", name, size)
		}
	}
	checkPeak(t, push)
	if in := s.Traffic.BlobBytesIn(); in < largeSize || in > largeSize+smallFile {
		t.Errorf("push: the registry got %d bytes, want the member once", in)
	}

	out := filepath.Join(u.dir, "out")
	if err := os.Mkdir(out, 0o755); err != nil {
		t.Fatal(err)
	}
	w = startWatch(t, out, u.tmp, u.cache)
	pull := u.must(t, "pull", "--debug", ref, "-o", "out/back.carton")
	for name, size := range w.end() {
		beside := strings.HasPrefix(name, filepath.Join(out, "back.carton"))
		if !beside && size > smallFile {
			t.Errorf("pull: wrote %s of %d bytes, want no copy", name, size)
		}
		if size > largeSize+smallFile {
			t.Errorf("pull: %s grew to %d bytes", name, size)
		}
	}
	checkPeak(t, pull)
	onlyThese(t, out, "back.carton")
	if got := s.Traffic.BlobBytesOut(); got < largeSize || got > largeSize+smallFile {
		t.Errorf("pull: the registry sent %d bytes, want the member once", got)
	}
	if got := memberSum(t, filepath.Join(out, "back.carton"), largeMember); got != sum {
		t.Errorf("%s came back with sha256 %s, want %s", largeMember, got, sum)
	}

	verify := u.must(t, "verify", "--debug", "out/back.carton")
	checkPeak(t, verify)
}

var peakLine = regexp.MustCompile(`(?m)^.*peak memory: (\d+(?:\.\d+)?) MiB`)

// checkPeak checks the figure that the command itself gives.
func checkPeak(t testing.TB, r result) {
	t.Helper()
	m := peakLine.FindStringSubmatch(r.stderr)
	if m == nil {
		t.Fatalf("carton-oci %s: --debug does not say its peak memory:\n%s", strings.Join(r.args, " "), r.stderr)
	}
	peak, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	if peak > peakLimitMiB || peak == 0 {
		t.Errorf("carton-oci %s: got a peak of %g MiB, want at most %d", r.args[0], peak, peakLimitMiB)
	}
}

// writeLarge writes a carton with a Stored member of 2 GiB that takes little
// space on disk and in which no two MiB are the same. It returns the member's
// sha256.
func writeLarge(t testing.TB, name string) string {
	t.Helper()
	sum, crc := sha256.New(), crc32.NewIEEE()
	writeLargeMember(t, io.MultiWriter(sum, crc))
	digest := hexOf(sum)
	manifest := "carton.toml=" + hexSum(info) + "\n" + largeMember + "=" + digest + "\n" +
		"tensor_data/index.toml=" + hexSum(emptyIndex) + "\n"

	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sparse := &sparseWriter{f: f}
	w := zip.NewWriter(sparse)
	member, err := w.CreateRaw(&zip.FileHeader{
		Name: largeMember, Method: zip.Store, CRC32: crc.Sum32(),
		CompressedSize64: largeSize, UncompressedSize64: largeSize,
	})
	if err != nil {
		t.Fatal(err)
	}
	writeLargeMember(t, member)
	for _, small := range [][2]string{{"carton.toml", info}, {"tensor_data/index.toml", emptyIndex}, {"MANIFEST", manifest}} {
		member, err := w.Create(small[0])
		if err == nil {
			_, err = io.WriteString(member, small[1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(sparse.off); err != nil {
		t.Fatal(err)
	}
	return digest
}

// writeLargeMember writes a safetensors file: a header for one tensor, and in
// the tensor a number at the start of every MiB, and zeros.
func writeLargeMember(t testing.TB, w io.Writer) {
	t.Helper()
	const headerSize = 4096
	header := make([]byte, headerSize)
	binary.LittleEndian.PutUint64(header, headerSize-8)
	text := `{"w": {"dtype": "U8", "shape": [` + strconv.Itoa(largeSize-headerSize) + `], "data_offsets": [0, ` +
		strconv.Itoa(largeSize-headerSize) + `]}}`
	copy(header[8:], text+strings.Repeat(" ", headerSize-8-len(text)))

	block := make([]byte, 1<<20)
	for i := range largeSize / len(block) {
		if i == 0 {
			copy(block, header)
		} else {
			clear(block[:headerSize])
			binary.LittleEndian.PutUint64(block, uint64(i))
		}
		if _, err := w.Write(block); err != nil {
			t.Fatal(err)
		}
	}
}

// sparseWriter writes to a file and leaves holes for zeros.
type sparseWriter struct {
	f   *os.File
	off int64
}

var zeros [4096]byte

func (w *sparseWriter) Write(p []byte) (int, error) {
	total := len(p)
	for len(p) > 0 {
		page := p[:min(len(p), len(zeros))]
		if !bytes.Equal(page, zeros[:len(page)]) {
			if _, err := w.f.WriteAt(page, w.off); err != nil {
				return total - len(p), err
			}
		}
		w.off += int64(len(page))
		p = p[len(page):]
	}
	return total, nil
}

// memberSum returns a member's sha256 as archive/zip reads it, which checks its
// CRC too.
func memberSum(t testing.TB, name, member string) string {
	t.Helper()
	r, err := zip.OpenReader(name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f, err := r.Open(member)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(err)
	}
	return hexOf(h)
}

func hexOf(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }
