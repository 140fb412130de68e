package e2e

import (
	"io/fs"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// watch looks at folders again and again while something runs, and remembers
// what it saw.
type watch struct {
	mu   sync.Mutex
	seen map[string]int64 // the largest size of every file that was ever seen
	stop chan struct{}
	done chan struct{}
}

func startWatch(t testing.TB, dirs ...string) *watch {
	t.Helper()
	w := &watch{seen: map[string]int64{}, stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			for _, dir := range dirs {
				w.look(dir)
			}
			select {
			case <-w.stop:
				return
			case <-tick.C:
			}
		}
	}()
	return w
}

func (w *watch) look(dir string) {
	// Files come and go while this runs, which is no error.
	_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // gone already
		}
		if info, err := d.Info(); err == nil {
			w.mu.Lock()
			w.seen[name] = max(w.seen[name], info.Size())
			w.mu.Unlock()
		}
		return nil
	})
}

// end stops watching and returns the files that were seen, with their largest
// size.
func (w *watch) end() map[string]int64 {
	close(w.stop)
	<-w.done
	return w.seen
}
