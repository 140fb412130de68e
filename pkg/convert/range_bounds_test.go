package convert

import (
	"runtime"
	"testing"
)

// TestOpeningARangeDoesNotCostAManifest: of many members, each is opened for what
// it is; pulling them is linear.
func TestOpeningARangeDoesNotCostAManifest(t *testing.T) {
	shelf, desc, _ := pushed(t, manyFiles(3000), Options{})
	src := opened(t, shelf, desc, OpenOptions{})
	members, err := src.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const times = 100
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range times {
		r, err := src.OpenRange(t.Context(), members[1000+i].Path, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
	}
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) / times; got > 64<<10 {
		t.Errorf("got %d bytes allocated for each, want at most 64 KiB; MANIFEST has %d", got, src.Manifest().Len())
	}
}
