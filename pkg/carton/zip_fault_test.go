package carton_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

// faulty fails at its n-th read, counted from 0.
type faulty struct {
	r   io.ReaderAt
	n   int
	err error
}

func (f *faulty) ReadAt(b []byte, off int64) (int, error) {
	f.n--
	if f.n == -1 {
		return 0, f.err
	}
	return f.r.ReadAt(b, off)
}

// A read that fails is that error wherever it happens: never a fault of the
// carton, which would be remembered against it.
func TestEveryReadMayFail(t *testing.T) {
	z := linked("model/l", "a")
	z.file("model/a").stream(16)
	z.file("model/a").local.extra = padding(1000)
	z.comment = string(make([]byte, 1<<16-1)) // so that the tail holds no more than that
	b := z.bytes()
	broken := errors.New("input/output error")
	for name, open := range map[string]func(r io.ReaderAt, size int64) (*carton.Reader, error){
		"NewReader": carton.NewReader, "NewLazyReader": carton.NewLazyReader,
	} {
		for n := 0; ; n++ {
			f := &faulty{r: bytes.NewReader(b), n: n, err: broken}
			src, err := open(f, int64(len(b)))
			if err == nil {
				err = readMembers(t.Context(), src)
			}
			if f.n >= 0 { // every read was had
				if err != nil || n < 3 {
					t.Errorf("%s: after %d reads: %v", name, n, err)
				}
				break
			}
			if !errors.Is(err, broken) || errors.Is(err, carton.ErrFormat) || errors.Is(err, carton.ErrChecksum) {
				t.Errorf("%s: read %d failed: got %v, want %v", name, n, err, broken)
			}
		}
	}
}

// A file that ends before its size is cut short, wherever that shows.
func TestEveryReadMayEndEarly(t *testing.T) {
	b := linked("model/l", "a").bytes()
	for n := range b {
		src, err := carton.NewReader(bytes.NewReader(b[:n]), int64(len(b)))
		if err == nil {
			err = readMembers(t.Context(), src)
		}
		checkError(t, err, carton.ErrFormat, "ends at byte")
	}
}

// So is one that says so.
func TestTruncatedAnywhere(t *testing.T) {
	b := linked("model/l", "a").bytes()
	for n := range b {
		_, err := carton.NewReader(bytes.NewReader(b[:n]), int64(n))
		checkError(t, err, carton.ErrFormat, "")
	}
}

// Every byte counts: whatever single bit changes, nothing is read that
// MANIFEST does not promise, and MANIFEST itself can't change unseen.
func TestEveryBitCounts(t *testing.T) {
	good := linked("model/l", "a")
	good.file("model/a").stream(24)
	b := good.bytes()
	want := mustOpen(t, b).Manifest().ModelHash()
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			src, err := carton.NewReader(bytes.NewReader(b), int64(len(b)))
			if err == nil {
				err = readMembers(t.Context(), src)
			}
			if err == nil && src.Manifest().ModelHash() != want {
				t.Errorf("byte %d, bit %d: another model hash", i, bit)
			}
			b[i] ^= 1 << bit
		}
	}
}

func TestCancelled(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	b := linked("model/l", "a").bytes()
	src, err := carton.NewLazyReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := src.Members(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("Members: got %v, want %v", err, context.Canceled)
	}
	if _, err := src.Members(t.Context()); err != nil {
		t.Errorf("Members, once more: %v", err)
	}
	folder, err := carton.OpenFS(folderOf("model/a", ""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := folder.Open(gone, "model/a"); !errors.Is(err, context.Canceled) {
		t.Errorf("Open: got %v, want %v", err, context.Canceled)
	}
}
