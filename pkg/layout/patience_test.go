package layout

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/place"
)

// TestDirDoesNotWaitForEver: a process that holds a file and does nothing is named
// in the end; one that writes is waited for.
func TestDirDoesNotWaitForEver(t *testing.T) {
	defer func(d time.Duration) { patience = d }(patience)
	patience = 500 * time.Millisecond
	d := &Dir{path: t.TempDir()}
	other, err := place.Create(filepath.Join(d.path, "index.json"), place.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Discard()
	stop, stopped := time.Now().Add(3*patience), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := int64(0); time.Now().Before(stop); i++ {
			if _, err := other.WriteAt([]byte("x"), i); err != nil {
				t.Error(err)
			}
			time.Sleep(patience / 20)
		}
	}()
	_, err = d.acquire(t.Context(), "index.json", place.Options{})
	if !errors.Is(err, place.ErrBusy) || time.Now().Before(stop) {
		t.Errorf("got %v, want that it waits for who writes and then gives up", err)
	}
	<-stopped
	if runtime.GOOS == "linux" && !strings.Contains(err.Error(), fmt.Sprintf("process %d (", os.Getpid())) {
		t.Errorf("got %v, want who holds the file", err)
	}
}
