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
	var err error
	s.machine.Do(func() { err = cmd.Run() })
	if err != nil {
		return "", fmt.Errorf("ctr %s: %w: %s", strings.Join(args, " "), err, &stderr)
	}
	return stdout.String(), nil
}

// Pull pulls an image from a registry that speaks HTTP, and extracts it.
func (s *Server) Pull(ref string) error { return s.pull(ref, "--plain-http") }

// PullFrom is Pull that asks the hosts in their order, as the hosts.toml of a node
// says that has mirrors of a registry. The registry is one of them only if it is named.
func (s *Server) PullFrom(ref string, hosts ...string) error {
	dir, err := os.MkdirTemp(s.dir, "hosts")
	if err != nil {
		return err
	}
	registry, _, _ := strings.Cut(ref, "/")
	var text strings.Builder
	fmt.Fprintf(&text, "server = %q\n", "http://"+hosts[len(hosts)-1])
	for _, host := range hosts {
		fmt.Fprintf(&text, "[host.%q]\ncapabilities = [\"pull\", \"resolve\"]\n", "http://"+host)
	}
	// A colon before the port is not for every file system: containerd takes this too.
	of := filepath.Join(dir, strings.Replace(registry, ":", "_", 1)+"_")
	if err := os.MkdirAll(of, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(of, "hosts.toml"), []byte(text.String()), 0o600); err != nil {
		return err
	}
	return s.pull(ref, "--hosts-dir", dir)
}

func (s *Server) pull(ref string, more ...string) error {
	args := append([]string{"images", "pull", "--snapshotter", s.Snapshotter}, more...)
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
	return s.MountPulled(t, ref)
}

// MountPulled is Mount of an image that has been pulled.
func (s *Server) MountPulled(t testing.TB, ref string) string {
	t.Helper()
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
