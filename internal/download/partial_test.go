package download_test

import (
	"sync/atomic"
	"testing"

	"github.com/carton-oci/carton-oci/internal/download"
)

// After a sync that failed, every block that was there is written once more, with
// the bytes that were hashed; nothing is fetched again.
func TestWhatWasNotSyncedIsWrittenAgain(t *testing.T) {
	for _, stream := range []bool{false, true} {
		p := newPlace(5*mib+7, 2*mib)
		for i := range p.parts {
			p.parts[i].Ranged = !stream
		}
		journal := &memory{}
		j := p.journal(t, journal)
		if _, err := p.run(t, download.Options{Journal: j}); err != nil {
			t.Fatal(err)
		}
		if err := j.Distrust(); err != nil {
			t.Fatal(err)
		}
		for _, again := range []string{"the run after", "and the next"} {
			q := p.again()
			var written atomic.Int64
			for _, f := range q.files {
				f.err = func(_ int64, n int) error { written.Add(int64(n)); return nil }
			}
			res, err := q.run(t, download.Options{Journal: q.journal(t, journal)})
			if err != nil || q.given > 0 || res.Resumed != 7*mib+7 || written.Load() != 7*mib+7 {
				t.Errorf("%s: %d bytes came, %d were used, %d written again: %v", again, q.given, res.Resumed, written.Load(), err)
			}
			q.complete(t)
		}
	}
}
