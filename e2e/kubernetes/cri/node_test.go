package cri

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/containerd"
	"github.com/carton-oci/carton-oci/e2e/internal/crio"
	"github.com/carton-oci/carton-oci/e2e/internal/lan"
	"github.com/carton-oci/carton-oci/e2e/internal/testimage"
	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	"github.com/carton-oci/carton-oci/internal/testenv"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/registry/remote"
)

// The registries that the examples name; on the node of a test all are its own
// registry.
const (
	exampleRegistry = "registry.example.com"
	toolRegistry    = "ghcr.io"
	dockerRegistry  = "docker.io"
)

// Who may read the private registry.
const (
	user     = "ada"
	password = "lovelace"
)

// The images of the tests.
const (
	pauseImage  = exampleRegistry + "/tools/pause:1"
	readerImage = exampleRegistry + "/tools/reader:1"
	cartonImage = toolRegistry + "/carton-oci/carton-oci:0.1.0"
	pythonImage = dockerRegistry + "/library/python:3.13-slim"
)

// runtimes are what pulls and mounts on a node.
var runtimes = map[string]func(*node, testing.TB){"containerd": (*node).startContainerd, "CRI-O": (*node).startCRIO}

// onEach runs a test on a node of each runtime.
func onEach(t *testing.T, test func(t *testing.T, n *node)) {
	for _, name := range slices.Sorted(maps.Keys(runtimes)) {
		t.Run(name, func(t *testing.T) { test(t, startNode(t, name)) })
	}
}

// node is a machine of a cluster: a runtime, and the registries that it pulls from.
type node struct {
	runtime  string
	socket   string       // the runtime's
	machine  *lan.Machine // that it is on
	erofs    bool         // containerd keeps layers as EROFS file systems
	state    string       // containerd's folder
	registry *testregistry.Server
	door     string               // the registry's host, as the machine reaches it
	private  *testregistry.Server // wants a password
	carton   string               // the command, as a user on the machine has it
	home     string
}

// registries are the servers that answer for registries, those of the examples among
// them. A server answers to its own name too: CRI-O finds no artifact, and sends no
// password, where it was told that another host answers for the registry.
func (n *node) registries() map[string]string {
	hosts := map[string]string{exampleRegistry: n.door, dockerRegistry: n.door, toolRegistry: n.door}
	for _, s := range []*testregistry.Server{n.registry, n.private} {
		hosts[s.Host] = s.Host
	}
	return hosts
}

// startNode starts one on this computer.
func startNode(t testing.TB, runtime string) *node {
	t.Helper()
	return (&node{runtime: runtime}).start(t, nil)
}

// start starts it, with the images of the tests in its registry. A node on a machine of
// its own reaches the registry on another one.
func (n *node) start(t testing.TB, registry *lan.Machine) *node {
	t.Helper()
	testenv.Program(t, "runc")
	n.registry, n.home = testregistry.Start(t, testregistry.Options{}), t.TempDir()
	n.door = n.registry.Host
	if registry != nil {
		n.door = n.registry.FrontOn(t, registry.Listen(t, 0), nil).Host
	}
	n.private = testregistry.Start(t, testregistry.Options{Auth: testregistry.Htpasswd, Users: map[string]string{user: password}})
	programs := t.TempDir()
	n.carton = build(t, programs, "carton-oci", testenv.Root(), "./cmd/carton-oci")
	here := filepath.Join(testenv.Root(), "e2e", "kubernetes")
	for ref, file := range map[string]string{
		"tools/pause:1":  build(t, programs, "pause", here, "./cmd/pause"),
		"tools/reader:1": build(t, programs, "reader", here, "./cmd/reader"),
	} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file)
		testimage.Image{
			Files:  map[string][]byte{"usr/local/bin/" + name: content},
			Config: ocispec.ImageConfig{Env: []string{"PATH=/usr/local/bin"}, Entrypoint: []string{"/usr/local/bin/" + name}},
		}.Push(t, n.registry.Host+"/"+ref)
	}
	pushReleaseImage(t, n.registry.Host)
	pythonStandIn(t).Push(t, n.registry.Host+"/library/python:3.13-slim")
	runtimes[n.runtime](n, t)
	return n
}

func (n *node) startContainerd(t testing.TB) {
	s := containerd.StartOn(t, n.machine, containerd.CRI, n.config(t))
	n.socket, n.state = s.Socket, s.Dir()
}

func (n *node) startCRIO(t testing.TB) {
	answers := func(socket string) error {
		conn, err := dial(socket)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		_, err = runtimev1.NewRuntimeServiceClient(conn).Version(t.Context(), &runtimev1.VersionRequest{})
		return err
	}
	n.machine.Do(func() {
		n.socket = crio.Start(t, crio.Options{Registries: n.registries(), PauseImage: pauseImage}, answers)
	})
}

// pushReleaseImage makes the image of a release, and puts it where the examples find
// it.
func pushReleaseImage(t testing.TB, host string) {
	t.Helper()
	dist := filepath.Join(t.TempDir(), "dist")
	const version = "v0.1.0-rc.1"
	cmd := exec.Command("go", "run", "./release", "-version", version, "-platforms", "linux/"+runtime.GOARCH, "-o", dist)
	cmd.Dir = filepath.Join(testenv.Root(), "e2e")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make the release: %v\n%s", err, out)
	}
	from, err := oci.New(filepath.Join(dist, "image"))
	if err != nil {
		t.Fatal(err)
	}
	_, name, _ := strings.Cut(cartonImage, "/")
	to, err := remote.NewRepository(host + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	to.PlainHTTP = true
	if _, err := oras.Copy(t.Context(), from, version[1:], to, to.Reference.Reference, oras.CopyOptions{}); err != nil {
		t.Fatal(err)
	}
}

// pythonStandIn is an image that is given this machine's /usr to run Python from,
// as there is no way here to the one of the examples.
func pythonStandIn(t testing.TB) testimage.Image {
	t.Helper()
	image := testimage.Image{Folders: []string{"usr"}, Symlinks: map[string]string{}, Config: ocispec.ImageConfig{Env: []string{"PATH=/usr/local/bin:/usr/bin"}}}
	for _, name := range []string{"bin", "lib", "lib64"} {
		if target, err := os.Readlink("/" + name); err == nil {
			image.Symlinks[name] = target
		}
	}
	return image
}

// build builds a program that needs nothing around it.
func build(t testing.TB, dir, name, from, path string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	cmd := exec.Command("go", "build", "-trimpath", "-o", file, path)
	cmd.Dir, cmd.Env = from, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, out)
	}
	return file
}

// config is containerd's, for a machine whose kernel may lack what containers
// like to have, and without a network of containers' own.
func (n *node) config(t testing.TB) func(*containerd.Server) string {
	return func(s *containerd.Server) string {
		certs := filepath.Join(s.Dir(), "certs.d")
		for registry, host := range n.registries() {
			dir := filepath.Join(certs, registry)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			server := "http://" + host
			hosts := fmt.Sprintf("server = %q\n\n[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n", server, server)
			if err := os.WriteFile(filepath.Join(dir, "hosts.toml"), []byte(hosts), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		snapshotter, more := s.Snapshotter, ""
		if n.erofs {
			snapshotter, more = "erofs", erofsConfig
		}
		return more + fmt.Sprintf(`
[plugins.'io.containerd.cri.v1.images']
  snapshotter = %q
  use_local_image_pull = %t
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = %q
[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = %q
[plugins.'io.containerd.cri.v1.runtime']
  disable_apparmor = true
  restrict_oom_score_adj = true
  enable_unprivileged_ports = false
  enable_unprivileged_icmp = false
[plugins.'io.containerd.cri.v1.runtime'.cni]
  conf_dir = %q
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  Root = %q
`, snapshotter, snapshotter != "overlayfs", pauseImage, certs, filepath.Join(s.Dir(), "cni"), filepath.Join(s.Dir(), "runc"))
	}
}

// must runs the command on the machine, and wants it to succeed.
func (n *node) must(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.Command(n.carton, args...)
	cmd.Dir = n.home
	cmd.Env = []string{"HOME=" + n.home, "PATH=" + os.Getenv("PATH")}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("carton-oci %v: %v", args, err)
	}
	return string(out)
}
