package containerd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/containerd"
	"github.com/carton-oci/carton-oci/e2e/internal/testimage"
	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	"github.com/opencontainers/go-digest"
)

func TestAnImageIsPulledAndMounted(t *testing.T) {
	s := testregistry.Start(t, testregistry.Options{})
	ref := s.Host + "/org/image:1"
	testimage.Image{Files: map[string][]byte{"folder/file": []byte("content")}}.Push(t, ref)
	dir := containerd.Start(t, containerd.Light).Mount(t, ref)
	got, err := os.ReadFile(filepath.Join(dir, "folder", "file"))
	if err != nil || string(got) != "content" {
		t.Errorf("got %q and %v, want the file's content", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "other"), nil, 0o600); err == nil {
		t.Error("a file can be written, want a read-only mount")
	}
}

// What is proved with this containerd rests on its telling right from wrong.
func TestWhatIsWrongIsRefused(t *testing.T) {
	s := testregistry.Start(t, testregistry.Options{})
	testimage.Image{DiffID: digest.FromString("another tar")}.Push(t, s.Host+"/org/image:1")
	c := containerd.Start(t, containerd.Light)
	for ref, want := range map[string]string{
		s.Host + "/org/image:1": "wrong diff id",
		s.Host + "/org/image:2": "not found",
	} {
		if err := c.Pull(ref); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error that says %q", err, want)
		}
	}
}
