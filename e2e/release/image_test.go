package main

import (
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// opened is an image that a runtime would run: its config, and its files.
type opened struct {
	ocispec.Image
	layers [][]byte
}

func (r *release) indexDigest(t *testing.T) string {
	t.Helper()
	desc, err := r.imageLayout(t).Resolve(t.Context(), r.number())
	if err != nil {
		t.Fatal(err)
	}
	return string(desc.Digest)
}

func (r *release) imageLayout(t *testing.T) *layout.Dir {
	t.Helper()
	dir, err := layout.OpenDir(filepath.Join(r.out, "image"))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// images reads the image of every architecture, each blob against its digest.
func (r *release) images(t *testing.T) map[string]opened {
	t.Helper()
	dir := r.imageLayout(t)
	read := func(desc ocispec.Descriptor, into any) []byte {
		raw, err := layout.ReadBlob(t.Context(), dir, desc, 1<<30)
		if err == nil && into != nil {
			err = json.Unmarshal(raw, into)
		}
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	desc, err := dir.Resolve(t.Context(), r.number())
	if err != nil {
		t.Fatal(err)
	}
	var index ocispec.Index
	read(desc, &index)
	images := map[string]opened{}
	for _, desc := range index.Manifests {
		var m ocispec.Manifest
		var o opened
		read(desc, &m)
		read(m.Config, &o.Image)
		for _, l := range m.Layers {
			o.layers = append(o.layers, read(l, nil))
		}
		if desc.Platform == nil || desc.Platform.OS != o.OS || desc.Platform.Architecture != o.Architecture {
			t.Errorf("the index says %v, and the image's config %v", desc.Platform, o.Platform)
		}
		images[o.Architecture] = o
	}
	return images
}

func (r *release) checkImage(t *testing.T) {
	images := r.images(t)
	for _, p := range r.platforms {
		o, ok := images[p.arch]
		switch {
		case p.os != "linux":
			continue
		case !ok:
			t.Errorf("there is no image for %s", p)
			continue
		}
		root := o.extract(t)
		if line := versionBy(t, p, filepath.Join(root, "usr/bin", program)); !strings.Contains(line, " "+r.version+" ") {
			t.Errorf("%s: it calls itself %q, want version %s", p, line, r.version)
		}
		o.checkRoots(t, root)
	}
	r.checkOthersReadIt(t, len(images))
	o := images[runtime.GOARCH]
	o.run(t, r.version)
}

// checkOthersReadIt has skopeo copy the image, as the upload does.
func (r *release) checkOthersReadIt(t *testing.T, n int) {
	skopeo := testenv.Program(t, "skopeo")
	from, to := "oci:"+filepath.Join(r.out, "image")+":"+r.number(), "oci:"+filepath.Join(t.TempDir(), "copy")+":1"
	if _, err := output(exec.Command(skopeo, "copy", "--quiet", "--all", "--preserve-digests", from, to)); err != nil {
		t.Error(err)
	}
	raw, err := output(exec.Command(skopeo, "inspect", "--raw", to))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(digest.FromString(raw)); got != r.indexDigest(t) || strings.Count(raw, `"architecture"`) != n {
		t.Errorf("skopeo's copy has the digest %s, want %s:\n%s", got, r.indexDigest(t), raw)
	}
}

// extract unpacks the layers as a runtime does, owners where this is root. Every
// layer must be what the config says of it.
func (o opened) extract(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for i, l := range o.layers {
		z, err := gzip.NewReader(bytes.NewReader(l))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := digest.FromReader(z); err != nil || got != o.RootFS.DiffIDs[i] {
			t.Errorf("layer %d: the config says %s, got %s, %v", i, o.RootFS.DiffIDs[i], got, err)
		}
		for _, e := range untarGz(t, l) {
			name := filepath.Join(root, e.name)
			if strings.HasSuffix(e.name, "/") {
				err = os.MkdirAll(name, 0o755)
			} else {
				err = os.WriteFile(name, e.content, 0o600)
			}
			if err == nil && os.Getuid() == 0 {
				err = os.Chown(name, e.uid, e.gid)
			}
			if err == nil {
				err = syscall.Chmod(name, uint32(e.mode)) // the sticky bit too
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

// checkRoots wants the certificates to be ones that Go takes.
func (o opened) checkRoots(t *testing.T, root string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "etc/ssl/certs/ca-certificates.crt"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for {
		var block *pem.Block
		if block, raw = pem.Decode(raw); block == nil {
			break
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, c.Subject.CommonName)
	}
	if len(names) < 100 || !slices.Contains(names, "ISRG Root X1") || len(raw) > 0 {
		t.Errorf("got %d certificates, want more than 100, that of Let's Encrypt among them, and nothing else", len(names))
	}
}

// run starts the image as a cluster does that is strict: as the user of the config,
// its root read-only, with one folder to write to.
func (o opened) run(t *testing.T, version string) {
	if os.Getuid() != 0 {
		testenv.NotChecked(t, "only root can start the image without a container engine")
	}
	if o.Config.User != "65532:65532" || o.Config.WorkingDir != "/work" {
		t.Fatalf("got the user %s in %s, want 65532:65532 in /work", o.Config.User, o.Config.WorkingDir)
	}
	root := o.extract(t)
	mount(t, root, root, "", syscall.MS_BIND, "")
	mount(t, "tmpfs", filepath.Join(root, "work"), "tmpfs", 0, "mode=0755,uid=65532,gid=65532,size=64m") // an emptyDir
	remountReadOnly(t, root)
	must := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(o.Config.Entrypoint[0], args...)
		cmd.Dir, cmd.Env = o.Config.WorkingDir, o.Config.Env
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: nonroot, Gid: nonroot}}
		out, err := output(cmd)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if got := must("version"); !strings.HasPrefix(got, "carton-oci "+version+" ") {
		t.Errorf("it calls itself %q, want version %s", got, version)
	}
	if err := os.WriteFile(filepath.Join(root, "work", "weights.bin"), bytes.Repeat([]byte("carton"), 1000), 0o644); err != nil {
		t.Fatal(err)
	}
	s := testregistry.Start(t, testregistry.Options{})
	ref := s.Host + "/org/m:1"
	must("push", "weights.bin", ref, "--runner", "noop", "--image")
	must("pull", ref, "--unpack", "m")
	must("verify", "m")
	content, err := os.ReadFile(filepath.Join(root, "work", "m", "model", "weights.bin"))
	if err != nil || len(content) != 6000 {
		t.Errorf("what was pulled has %d bytes, %v; want 6000", len(content), err)
	}
	if _, err := io.WriteString(failing{filepath.Join(root, "usr", "x")}, "x"); !errors.Is(err, syscall.EROFS) {
		t.Errorf("the root is not read-only: %v", err)
	}
}

// failing writes to a file that can't be made.
type failing struct{ name string }

func (f failing) Write(b []byte) (int, error) { return len(b), os.WriteFile(f.name, b, 0o644) }

func mount(t *testing.T, from, to, kind string, flags uintptr, data string) {
	t.Helper()
	if err := syscall.Mount(from, to, kind, flags, data); err != nil {
		testenv.NotChecked(t, "nothing can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(to, 0); err != nil {
			t.Errorf("unmount %s: %v", to, err)
		}
	})
}

func remountReadOnly(t *testing.T, root string) {
	t.Helper()
	if err := syscall.Mount("", root, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
}
