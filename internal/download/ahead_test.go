package download_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash/crc32"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/download"
	"github.com/carton-oci/carton-oci/internal/testenv"
)

// zeros is any number of zeros, and a file that holds nothing else.
type zeros struct{}

func (zeros) Read(b []byte) (int, error)             { clear(b); return len(b), nil }
func (zeros) ReadAt(b []byte, _ int64) (int, error)  { clear(b); return len(b), nil }
func (zeros) WriteAt(b []byte, _ int64) (int, error) { return len(b), nil }
func (zeros) Close() error                           { return nil }
func (zeros) StartWriteback(off, n int64)            {}

// While the first range hangs the others go on, but not for ever: what they bring
// waits for its hash on the disk.
func TestHowFarAhead(t *testing.T) {
	testenv.Heavy(t) // hashes 812 MiB twice
	const size = download.Ahead + 300*mib
	sum, crc := sha256.New(), crc32.NewIEEE()
	if _, err := io.Copy(io.MultiWriter(sum, crc), io.LimitReader(zeros{}, size)); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var asked int64
	full := make(chan struct{})
	job := download.Job{
		Parts: []download.Part{{Name: "zeros", Size: size, SHA256: hex.EncodeToString(sum.Sum(nil)), Ranged: true}},
		Range: func(_ context.Context, _ int, off, n int64) (io.ReadCloser, error) {
			mu.Lock()
			asked += n
			if asked >= download.Ahead {
				select {
				case <-full:
				default:
					close(full)
				}
			}
			mu.Unlock()
			r := io.LimitReader(zeros{}, n)
			if off == 0 {
				r = &beforeRead{r, func() {
					<-full
					time.Sleep(50 * time.Millisecond) // so that they can ask for more, if they do
					mu.Lock()
					defer mu.Unlock()
					if most := int64(download.Ahead + 9*download.RangeSize); asked > most {
						t.Errorf("%d bytes were asked for, want at most %d", asked, most)
					}
				}}
			}
			return io.NopCloser(r), nil
		},
		Create: func(int) (download.File, error) { return zeros{}, nil },
		Done: func(_ int, _ download.File, _ int64, got uint32) error {
			if want := crc.Sum32(); got != want {
				t.Errorf("got the CRC %08x, want %08x", got, want)
			}
			return nil
		},
	}
	if _, err := download.Run(t.Context(), job, download.Options{}); err != nil {
		t.Fatal(err)
	}
	if asked != size {
		t.Errorf("%d bytes were asked for, want %d", asked, size)
	}
}

// beforeRead calls a function before its first byte.
type beforeRead struct {
	io.Reader
	first func()
}

func (h *beforeRead) Read(b []byte) (int, error) {
	if h.first != nil {
		h.first()
		h.first = nil
	}
	return h.Reader.Read(b)
}
