package layout_test

import (
	"path/filepath"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/layout/storetest"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/content/oci"
)

func TestDirIsAStore(t *testing.T) {
	storetest.TestStore(t, func() layout.Store {
		return createDir(t, filepath.Join(t.TempDir(), "layout"))
	})
}

// Whoever puts a store into a struct keeps what it promises.
func TestDirInAStructIsAStore(t *testing.T) {
	storetest.TestStore(t, func() layout.Store {
		return struct{ layout.Store }{createDir(t, filepath.Join(t.TempDir(), "layout"))}
	})
}

func TestMemoryTargetIsAStore(t *testing.T) {
	storetest.TestStore(t, func() layout.Store { return layout.FromTarget(memory.New()) })
}

func TestLayoutTargetIsAStore(t *testing.T) {
	storetest.TestStore(t, func() layout.Store {
		s, err := oci.New(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		return layout.FromTarget(s)
	})
}
