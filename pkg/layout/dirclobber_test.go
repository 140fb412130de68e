package layout_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/place"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/layout/storetest"
)

// Two pushes have both seen that there is no such tag, and wait for the index.
func TestNoClobberWhileAnotherWritesTheIndex(t *testing.T) {
	d, a := pushed(t, 1)
	mine := storetest.Artifact(t, 2)
	other, err := place.Create(filepath.Join(d.Path(), "index.json"), place.Options{Replace: true})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := layout.Push(t.Context(), d, mine, layout.PushOptions{Tags: []string{"v1"}, NoClobber: true})
		done <- err
	}()
	for { // its manifest is there, the last thing before the index
		if _, err := d.Stat(t.Context(), mine.Digest); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond)
	index := `{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"` + string(a.Digest) + `","size":584,` +
		`"annotations":{"org.opencontainers.image.ref.name":"v1"}}]}`
	if _, err := other.WriteAt([]byte(index), 0); err != nil {
		t.Fatal(err)
	}
	if err := other.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, layout.ErrTagExists) {
		t.Errorf("got %v, want ErrTagExists", err)
	}
	if desc, err := d.Resolve(t.Context(), "v1"); err != nil || desc.Digest != a.Digest {
		t.Errorf("the tag has moved: %v, %v", desc, err)
	}
}
