package download_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/carton-oci/carton-oci/internal/download"
)

// eager is a file that is told what to bring to the disk.
type eager struct {
	*memory
	mu   sync.Mutex
	told [][2]int64 // off, n
}

func (e *eager) StartWriteback(off, n int64) {
	e.memory.mu.Lock()
	there := int64(len(e.b)) >= off+n
	e.memory.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if !there {
		n = -1 // it was told too early
	}
	e.told = append(e.told, [2]int64{off, n})
}

// Every whole block that has arrived is on its way to the disk, once, by ranges
// and in a stream.
func TestBlocksAreWrittenBack(t *testing.T) {
	const size = 3*mib + 5
	want := [][2]int64{{0, mib}, {mib, mib}, {2 * mib, mib}}
	for name, ranged := range map[string]bool{"ranges": true, "stream": false} {
		p := newPlace(size)
		p.parts[0].Ranged = ranged
		file := &eager{memory: p.files[0]}
		job := p.job()
		job.Create = func(int) (download.File, error) { return file, nil }
		if _, err := download.Run(t.Context(), job, download.Options{}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		slices.SortFunc(file.told, func(a, b [2]int64) int { return int(a[0] - b[0]) })
		if !slices.Equal(file.told, want) {
			t.Errorf("%s: told of %v, want %v", name, file.told, want)
		}
	}
}
