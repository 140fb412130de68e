package layout_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
)

// someTar is a tar that compresses, and takes several blocks.
func someTar(t testing.TB) []byte {
	t.Helper()
	var entries []layout.TarEntry
	for i := range 40 {
		entries = append(entries, layout.TarEntry{Path: fmt.Sprintf("model/part-%02d.json", i), Size: int64(i) * 1000})
	}
	return tarBytes(t, entries)
}

func compress(t testing.TB, c layout.Compression, r io.Reader) []byte {
	t.Helper()
	z, err := layout.Compress(c, nopCloser{r})
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func decompress(c layout.Compression, r io.Reader) ([]byte, error) {
	d, err := layout.Decompress(context.Background(), c, r)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return io.ReadAll(d)
}

func TestCompressedBytesArePinned(t *testing.T) {
	plain := someTar(t)
	for c, want := range map[layout.Compression][2]digest.Digest{
		layout.Uncompressed: {
			"sha256:3a126bb39c30e665fcd855613f84493b608572a4b702bd5de9826cf57c8356e8",
			"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		},
		layout.Gzip: {
			"sha256:482e30df2a8ed68a0a6bec9dde6d7457bb20b7926bf675782f288fe0e18be865",
			"sha256:d745de7aeb2aad43aa42c3327d96aa9359fc28454e5bb26877b6bbe9501e8eff",
		},
		layout.Zstd: {
			"sha256:d57453915e4599d952333ea32dd6cfe1e44718dd3dbc766a6326c23d2b838414",
			"sha256:fa7e0653199fc4971ea8b48b945fad385c06923d64f7b9cc058d1bd9d56e31f4",
		},
	} {
		if got := digest.FromBytes(compress(t, c, bytes.NewReader(plain))); got != want[0] {
			t.Errorf("%q: got %s, want %s", c, got, want[0])
		}
		if got := digest.FromBytes(compress(t, c, iotest.OneByteReader(bytes.NewReader(plain)))); got != want[0] {
			t.Errorf("%q: depends on how its source delivers: got %s", c, got)
		}
		if got := digest.FromBytes(compress(t, c, strings.NewReader(""))); got != want[1] {
			t.Errorf("%q of nothing: got %s, want %s", c, got, want[1])
		}
	}
}

func TestCompressAndBack(t *testing.T) {
	for _, c := range []layout.Compression{layout.Uncompressed, layout.Gzip, layout.Zstd} {
		for _, plain := range [][]byte{{}, {1}, someTar(t), make([]byte, 10<<20)} {
			packed := compress(t, c, bytes.NewReader(plain))
			if c != layout.Uncompressed && len(plain) > 1000 && len(packed) > len(plain)/2 {
				t.Errorf("%q: %d bytes became %d", c, len(plain), len(packed))
			}
			for _, r := range []io.Reader{bytes.NewReader(packed), iotest.HalfReader(bytes.NewReader(packed)), iotest.DataErrReader(bytes.NewReader(packed))} {
				if got, err := decompress(c, r); err != nil || !bytes.Equal(got, plain) {
					t.Errorf("%q: got %d bytes, %v, want %d", c, len(got), err, len(plain))
				}
			}
		}
	}
}

func TestCompressPassesOnErrors(t *testing.T) {
	broken := errors.New("disk is gone")
	for _, c := range []layout.Compression{layout.Gzip, layout.Zstd} {
		for _, cause := range []error{broken, fmt.Errorf("cut: %w", io.EOF)} {
			src := io.MultiReader(bytes.NewReader(make([]byte, 100_000)), iotest.ErrReader(cause))
			z, err := layout.Compress(c, nopCloser{src})
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(z)
			if !errors.Is(err, cause) {
				t.Errorf("%s: got %v, want %v", c, err, cause)
			}
			if _, err := decompress(c, bytes.NewReader(b)); err == nil {
				t.Errorf("%s: what came before the error is a whole stream", c)
			}
		}
	}
}

func TestCompressClosesItsSource(t *testing.T) {
	open := 1
	z, err := layout.Compress(layout.Zstd, closeCounter{strings.NewReader("x"), &open})
	if err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil || open != 0 {
		t.Errorf("got %d open, %v", open, err)
	}
}

func TestDecompressRefuses(t *testing.T) {
	plain := someTar(t)
	gz, zst := compress(t, layout.Gzip, bytes.NewReader(plain)), compress(t, layout.Zstd, bytes.NewReader(plain))
	flip := func(b []byte, i int) []byte {
		b = bytes.Clone(b)
		b[(i+len(b))%len(b)] ^= 0x55
		return b
	}
	cases := []struct {
		name string
		c    layout.Compression
		b    []byte
	}{
		{"two gzip members", layout.Gzip, join(gz, gz)},
		{"an empty gzip member behind", layout.Gzip, join(gz, compress(t, layout.Gzip, strings.NewReader("")))},
		{"a byte behind gzip", layout.Gzip, join(gz, []byte{0})},
		{"zeros behind gzip", layout.Gzip, join(gz, make([]byte, 100_000))},
		{"gzip cut short", layout.Gzip, gz[:len(gz)-1]},
		{"gzip cut in the header", layout.Gzip, gz[:5]},
		{"no gzip", layout.Gzip, nil},
		{"gzip with another checksum", layout.Gzip, flip(gz, -8)},
		{"gzip with another length", layout.Gzip, flip(gz, -1)},
		{"zstd as gzip", layout.Gzip, zst},
		{"tar as gzip", layout.Gzip, plain},
		{"two zstd frames", layout.Zstd, join(zst, zst)},
		{"a skippable frame behind zstd", layout.Zstd, join(zst, []byte{0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0})},
		{"a byte behind zstd", layout.Zstd, join(zst, []byte{0})},
		{"zstd cut short", layout.Zstd, zst[:len(zst)-1]},
		{"no zstd", layout.Zstd, nil},
		{"zstd with another checksum", layout.Zstd, flip(zst, -1)},
		{"gzip as zstd", layout.Zstd, gz},
		{"a window of 512 MiB", layout.Zstd, []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 19 << 3, 1, 0, 0}},
		{"unknown", "bzip2", gz},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, err := decompress(c.c, bytes.NewReader(c.b)); !errors.Is(err, layout.ErrFormat) || errors.Is(err, io.EOF) {
				t.Errorf("got %v, want ErrFormat, and no EOF", err)
			}
		})
	}
	if _, err := layout.Compress("bzip2", nopCloser{strings.NewReader("")}); !errors.Is(err, layout.ErrFormat) {
		t.Errorf("got %v, want ErrFormat", err)
	}
}

func TestDecompressPassesOnErrors(t *testing.T) {
	broken := errors.New("connection reset")
	for _, c := range []layout.Compression{layout.Gzip, layout.Zstd} {
		packed := compress(t, c, bytes.NewReader(someTar(t)))
		for _, n := range []int{0, 3, len(packed) / 2, len(packed) - 1, len(packed)} {
			_, err := decompress(c, io.MultiReader(bytes.NewReader(packed[:n]), iotest.ErrReader(broken)))
			if !errors.Is(err, broken) || errors.Is(err, layout.ErrFormat) {
				t.Errorf("%s after %d bytes: got %v, want %v alone", c, n, err, broken)
			}
		}
	}
}

// What other programs compress is read, and the other way round.
func TestOtherCompressors(t *testing.T) {
	plain := someTar(t)
	var gz, zst bytes.Buffer
	g, _ := gzip.NewWriterLevel(&gz, gzip.BestCompression)
	g.Name, g.Comment = "layer.tar", "with a name"
	g.Write(plain)
	g.Close()
	z, _ := zstd.NewWriter(&zst, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	z.Write(plain)
	z.Close()
	for c, b := range map[layout.Compression][]byte{layout.Gzip: gz.Bytes(), layout.Zstd: zst.Bytes()} {
		if got, err := decompress(c, bytes.NewReader(b)); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%s: got %d bytes, %v", c, len(got), err)
		}
	}
	ours := compress(t, layout.Gzip, bytes.NewReader(plain))
	cmd := exec.Command(testenv.Program(t, "gzip"), "-dc")
	cmd.Stdin = bytes.NewReader(ours)
	if got, err := cmd.Output(); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("gzip reads %d bytes, %v", len(got), err)
	}
}

// What unpacks to far more than it is goes through in little memory.
func TestBombsAreStreamed(t *testing.T) {
	testenv.Heavy(t)
	for _, c := range []layout.Compression{layout.Gzip, layout.Zstd} {
		z, err := layout.Compress(c, nopCloser{io.LimitReader(zeros{}, 128<<20)})
		if err != nil {
			t.Fatal(err)
		}
		d, err := layout.Decompress(t.Context(), c, z)
		if err != nil {
			t.Fatal(err)
		}
		before := allocated()
		n, err := io.Copy(io.Discard, d)
		if err != nil || n != 128<<20 {
			t.Errorf("%s: got %d bytes, %v", c, n, err)
		}
		if grown := allocated() - before; grown > 64<<20 {
			t.Errorf("%s: took %d bytes", c, grown)
		}
	}
}
