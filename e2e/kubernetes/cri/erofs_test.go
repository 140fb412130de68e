package cri

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/carton-oci/carton-oci/internal/testenv"
)

// The promise: what a pod sees is the same where containerd keeps layers as EROFS file
// systems.
func TestAPodSeesTheUnpackedCartonOnEROFS(t *testing.T) {
	if known, err := os.ReadFile("/proc/filesystems"); err != nil || !bytes.Contains(known, []byte("\terofs\n")) {
		testenv.NotChecked(t, "this kernel has no EROFS")
	}
	help, _ := exec.Command(testenv.Program(t, "mkfs.erofs"), "--help").CombinedOutput()
	if !bytes.Contains(help, []byte("--tar=")) {
		testenv.NotChecked(t, "this mkfs.erofs makes no file system of a tar: containerd wants one of erofs-utils 1.7")
	}
	n := (&node{runtime: "containerd", erofs: true}).start(t, nil)
	aPodSeesTheUnpackedCarton(t, n)
	layers, err := filepath.Glob(filepath.Join(n.state, "root", "io.containerd.snapshotter.v1.erofs", "snapshots", "*", "layer.erofs"))
	if err != nil || len(layers) == 0 {
		t.Errorf("got no file systems of layers, %v: the pods were not on EROFS", err)
	}
}

// erofsConfig lets containerd extract with EROFS first, which leaves to others what is
// not for it.
const erofsConfig = `
[plugins.'io.containerd.service.v1.diff-service']
  default = ["erofs", "walking"]
`
