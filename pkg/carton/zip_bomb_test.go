package carton_test

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"hash/crc32"
	"io"
	"runtime"
	"testing"

	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/klauspost/compress/zstd"
)

// zeros reads n zeros.
type zeros struct{ n int64 }

func (z *zeros) Read(b []byte) (int, error) {
	if z.n == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(b)), z.n)
	clear(b[:n])
	z.n -= n
	return int(n), nil
}

// A member of a few kB that unpacks to a lot is read as a stream; only its size
// is odd.
func TestBombsAreStreamed(t *testing.T) {
	testenv.Heavy(t)
	const size = 512 << 20
	sum, crc := sha256.New(), crc32.NewIEEE()
	if _, err := io.Copy(io.MultiWriter(sum, crc), &zeros{size}); err != nil {
		t.Fatal(err)
	}
	for method, compressor := range map[uint16]func(w io.Writer) (io.WriteCloser, error){
		8:  func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) },
		93: func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1)) },
	} {
		var packed bytes.Buffer
		w, err := compressor(&packed)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(w, &zeros{size}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		z := &rawZip{}
		f := z.add("model/bomb", "")
		f.packed = packed.Bytes()
		f.both(func(h *rawHeader) {
			h.method, h.packed, h.size, h.crc = method, uint32(packed.Len()), size, crc.Sum32()
		})
		z.add(carton.ManifestName, "model/bomb="+hex.EncodeToString(sum.Sum(nil))+"\n")
		b := z.bytes()
		src, err := carton.NewReader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := readMembers(t.Context(), src); err != nil {
			t.Errorf("method %d: %v", method, err)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
			t.Errorf("method %d: allocated %d MiB", method, n>>20)
		}
	}
}

// A zip, or another carton, inside of a carton is content like any other.
func TestZipInAZip(t *testing.T) {
	inner := string(good().bytes())
	for _, pairs := range [][]string{{"model/inner.zip", inner}, {"model/a", "a", "model/z.carton", inner}} {
		z := zipOf(pairs...)
		src, err := openBoth(t, z.bytes())
		if err != nil {
			t.Fatal(err)
		}
		name := pairs[len(pairs)-2]
		if b, err := carton.ReadMember(t.Context(), src, name, 1<<20); err != nil || string(b) != inner {
			t.Errorf("%s: got %d bytes, %v", name, len(b), err)
		}
	}
	// Its own end record before the last one is not mistaken for it.
	z := zipOf("model/a", "a")
	z.files[0], z.files[1] = z.files[1], z.files[0]
	z.files[1].packed = []byte(inner)
	z.files[1].both(func(h *rawHeader) {
		h.size, h.packed, h.crc = uint32(len(inner)), uint32(len(inner)), crc32.ChecksumIEEE([]byte(inner))
	})
	z.file(carton.ManifestName).packed = []byte(manifestOf("model/a", inner))
	z.file(carton.ManifestName).both(func(h *rawHeader) { h.crc = 0 })
	if _, err := openBoth(t, z.bytes()); err != nil {
		t.Error(err)
	}
}
