package testregistry

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// blobs is where distribution's file system storage keeps blobs and image
// manifests: sha256/ab/abcd…/data.
const blobs = "docker/registry/v2/blobs/sha256"

func (s *Server) blobFile(digest string) string {
	hex := strings.TrimPrefix(digest, "sha256:")
	return filepath.Join(s.storage, filepath.FromSlash(blobs), hex[:2], hex, "data")
}

// Blob returns the bytes that the registry keeps under digest.
func (s *Server) Blob(t testing.TB, digest string) []byte {
	t.Helper()
	b, err := os.ReadFile(s.blobFile(digest))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Corrupt changes one bit in the middle of a blob, behind the registry's back.
func (s *Server) Corrupt(t testing.TB, digest string) {
	t.Helper()
	b := s.Blob(t, digest)
	b[len(b)/2] ^= 1
	if err := os.WriteFile(s.blobFile(digest), b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Blobs returns how many blobs and image manifests the registry keeps.
func (s *Server) Blobs(t testing.TB) int {
	t.Helper()
	count := 0
	err := filepath.WalkDir(filepath.Join(s.storage, filepath.FromSlash(blobs)),
		func(_ string, d fs.DirEntry, err error) error {
			if err == nil && d.Name() == "data" {
				count++
			}
			return err
		})
	if err != nil {
		t.Fatal(err)
	}
	return count
}
