package containerd

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func (s *Server) ctr(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.programs, "ctr"), append([]string{"--address", s.Socket}, args...)...)
	cmd.Env = s.env()
	return cmd
}

// Ctr runs containerd's own client, and returns what it prints. The error holds
// what it says.
func (s *Server) Ctr(args ...string) (string, error) {
	cmd := s.ctr(args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("ctr %s: %w: %s", strings.Join(args, " "), err, &stderr)
	}
	return stdout.String(), nil
}

// Pull pulls an image from a registry that speaks HTTP, and extracts it.
func (s *Server) Pull(ref string) error {
	args := []string{"images", "pull", "--plain-http", "--snapshotter", s.Snapshotter}
	if s.Snapshotter == "native" {
		// The service that pulls where the client doesn't extracts for overlayfs alone.
		args = append(args, "--local")
	}
	_, err := s.Ctr(append(args, ref)...)
	return err
}

// Mount pulls an image and mounts it, read-only, until the test ends. It returns
// the folder.
func (s *Server) Mount(t testing.TB, ref string) string {
	t.Helper()
	if err := s.Pull(ref); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(s.dir, "mount") //nolint:usetesting // unmounted with all else below it
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ctr("images", "mount", "--snapshotter", s.Snapshotter, ref, dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := s.Ctr("images", "unmount", "--snapshotter", s.Snapshotter, "--rm", dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
