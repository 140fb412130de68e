package cri

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/testenv"
	corev1 "k8s.io/api/core/v1"
)

// The promise: of a second version of a model a node fetches what has changed.
func TestOfASecondVersionOnlyWhatChangedTravels(t *testing.T) {
	onEach(t, ofASecondVersionOnlyWhatChangedTravels)
}

func ofASecondVersionOnlyWhatChangedTravels(t *testing.T, n *node) {
	const weight = 8 << 20
	const small = 64 << 10 // MANIFEST, carton.toml, the config and the image manifest, each in its layer
	k := startKubelet(t, n)
	if _, err := k.pull(t.Context(), corev1.PodSpec{}, readerImage); err != nil {
		t.Fatal(err)
	}
	here := build(t, t.TempDir(), "reader", filepath.Join(testenv.Root(), "e2e", "kubernetes"), "./cmd/reader")
	for i, tt := range []struct {
		seeds []byte
		want  int64 // bytes of weights from the registry
	}{
		{[]byte{1, 2, 3, 4}, 4 * weight},
		{[]byte{1, 2, 9, 4}, weight},
		{[]byte{1, 2, 3, 4}, 0}, // back to the first
	} {
		folder := fmt.Sprintf("version%d", i)
		writeWeights(t, filepath.Join(n.home, folder), weight, tt.seeds...)
		ref := fmt.Sprintf("%s/models/large:%d", n.registry.Host, i)
		n.must(t, "push", "./"+folder, ref, "--image")
		unpacked := filepath.Join(n.home, "unpacked"+folder)
		n.must(t, "pull", ref, "--unpack", unpacked)
		if err := os.Symlink("model", filepath.Join(unpacked, "models")); err != nil { // which is in the image alone
			t.Fatal(err)
		}
		want, err := exec.Command(here, unpacked+"/").Output()
		if err != nil {
			t.Fatal(err)
		}
		n.registry.Traffic.Reset()
		got, err := k.run(t, folder, reader(ref+"-image", ""))
		if err != nil || len(got) != 1 || got[0].code != 0 {
			t.Fatalf("got %+v, %v", got, err)
		}
		sameTree(t, tree(t, got[0].stdout), tree(t, string(want)))
		n.registry.Traffic.Settle()
		sent := n.registry.Traffic.BlobBytesOut()
		if sent < tt.want || sent > tt.want+small {
			t.Errorf("version %d: got %d bytes from the registry, want the %d of the weights that the node lacks\n%s", i, sent, tt.want, n.registry.Traffic)
		}
		testenv.Checked(t, 1, "%d bytes from the registry, of %d, for version %d", sent, 4*weight, i)
	}
}

// writeWeights writes an unpacked carton: a weight of so many bytes for each seed.
func writeWeights(t testing.TB, dir string, size int64, seeds ...byte) {
	t.Helper()
	var lines []string
	write := func(name string, content io.Reader) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		h := sha256.New()
		if _, err := io.Copy(io.MultiWriter(f, h), content); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, name+"="+hex.EncodeToString(h.Sum(nil)))
	}
	write("carton.toml", strings.NewReader(weightsInfo))
	write("tensor_data/index.toml", strings.NewReader(weightsIndex))
	for i, seed := range seeds {
		write(fmt.Sprintf("model/part%d.bin", i), io.LimitReader(rand.NewChaCha8([32]byte{seed}), size))
	}
	slices.Sort(lines)
	write("MANIFEST", strings.NewReader(strings.Join(lines, "\n")+"\n"))
}

const (
	weightsInfo  = "spec_version = 1\n\n[runner]\nrunner_name = \"python\"\nrequired_framework_version = \"=3.11\"\nrunner_compat_version = 1\n"
	weightsIndex = "tensor = []\n"
)
