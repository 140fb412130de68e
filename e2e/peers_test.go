package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/e2e/internal/containerd"
	"github.com/carton-oci/carton-oci/e2e/internal/lan"
	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// The promise: nodes can have the image form from each other, and from a daemon that
// fetches by pieces, when the registry is gone. The nodes are real containerds, on
// machines of their own, and the kernel counts what travels. The two daemons are played,
// by the rules that Spegel and Dragonfly have: docs/kubernetes.md says why.

// peersSize is how large the model is: CARTON_OCI_PEERS_BYTES, or small.
func peersSize(t *testing.T) int64 {
	text := os.Getenv("CARTON_OCI_PEERS_BYTES")
	if text == "" {
		return 16 << 20
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// layerPeer hands out what is in a node's containerd, as Spegel does: what it is asked
// for by digest, and the tags of the node's own images.
type layerPeer struct {
	t    *testing.T
	node *containerd.Server
}

func (p *layerPeer) file(digest string) string {
	return filepath.Join(p.node.Dir(), "root", "io.containerd.content.v1.content", "blobs", "sha256", strings.TrimPrefix(digest, "sha256:"))
}

// digestOf returns the digest of an image that the node has: a line of ctr is the name,
// media type and digest.
func (p *layerPeer) digestOf(name string) string {
	list, err := p.node.Ctr("images", "ls")
	if err != nil {
		p.t.Error(err)
	}
	for line := range strings.Lines(list) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] == name {
			return fields[2]
		}
	}
	return ""
}

func (p *layerPeer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	digest := path.Base(r.URL.Path)
	repository, manifest, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2/"), "/manifests/")
	if ok && !strings.Contains(manifest, ":") {
		digest = p.digestOf(r.URL.Query().Get("ns") + "/" + repository + ":" + manifest)
	}
	f, err := os.Open(p.file(digest))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	defer f.Close()
	if ok {
		w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
	} else {
		w.Header().Set("Content-Type", "application/octet-stream")
	}
	w.Header().Set("Docker-Content-Digest", digest)
	http.ServeContent(w, r, "", time.Time{}, f)
}

// piecePeer is told to fetch a model ahead of time, asks the registry for blobs by
// pieces, keeps them, and hands them out, as Dragonfly's daemon does.
type piecePeer struct {
	machine  *lan.Machine
	registry string
	kept     map[string]*answerKept
}

type answerKept struct {
	header http.Header
	body   []byte
}

// pieceBytes is what Dragonfly asks for at once.
const pieceBytes = 4 << 20

func (p *piecePeer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := p.kept[r.URL.Path]
	if a == nil {
		http.NotFound(w, r)
		return
	}
	for _, name := range []string{"Content-Type", "Docker-Content-Digest"} {
		w.Header().Set(name, a.header.Get(name))
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.body))
}

// preheat fetches an image of a repository.
func (p *piecePeer) preheat(t *testing.T, repository, tag string) {
	t.Helper()
	manifest := p.fetch(t, "/v2/"+repository+"/manifests/"+tag)
	p.kept["/v2/"+repository+"/manifests/"+digest.FromBytes(manifest.body).String()] = manifest
	var m ocispec.Manifest
	if err := json.Unmarshal(manifest.body, &m); err != nil {
		t.Fatal(err)
	}
	for _, desc := range append(m.Layers, m.Config) {
		p.fetch(t, "/v2/"+repository+"/blobs/"+desc.Digest.String())
	}
}

func (p *piecePeer) fetch(t *testing.T, path string) *answerKept {
	t.Helper()
	a := &answerKept{}
	client := &http.Client{Transport: &http.Transport{DialContext: p.machine.DialContext}}
	defer client.CloseIdleConnections()
	for size := int64(1); int64(len(a.body)) < size; {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.registry+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", ocispec.MediaTypeImageManifest)
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", len(a.body), len(a.body)+pieceBytes-1))
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		part, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		a.header, a.body = resp.Header, append(a.body, part...)
		size = int64(len(a.body)) // all, where nothing else is said
		if _, total, ok := strings.Cut(resp.Header.Get("Content-Range"), "/"); ok && err == nil {
			size, err = strconv.ParseInt(total, 10, 64)
		}
		if err != nil || resp.StatusCode/100 != 2 {
			t.Fatalf("%s: %s, %v", req.URL, resp.Status, err)
		}
	}
	p.kept[path] = a
	return a
}

func TestNodesHaveModelsFromEachOther(t *testing.T) {
	u := newUser(t)
	size := peersSize(t)
	writeWeights(t, u.path("large"), 4, size/4)
	s := testregistry.Start(t, testregistry.Options{})
	u.must(t, "push", "./large", s.Host+"/org/large:1", "--image")
	u.must(t, "pull", s.Host+"/org/large:1", "--unpack", u.path("tree"))
	want := withModels(mountTree(t, u.path("tree")))

	network := lan.New(t)
	registry, firstNode, daemon := network.Machine(t), network.Machine(t), network.Machine(t)
	door := s.FrontOn(t, registry.Listen(t, 0), nil)
	ref := door.Host + "/org/large:1-image"
	first := containerd.StartOn(t, firstNode, containerd.Light)
	layers := serve(t, firstNode, &layerPeer{t: t, node: first})
	before := registry.Sent(t)
	if err := first.PullFrom(ref, layers, door.Host); err != nil {
		t.Fatal(err)
	}
	wantSent(t, "the registry to the first node", registry.Sent(t)-before, size)

	before = registry.Sent(t)
	keeper := &piecePeer{machine: daemon, registry: door.Host, kept: map[string]*answerKept{}}
	keeper.preheat(t, "org/large", "1-image")
	wantSent(t, "the registry to the daemon", registry.Sent(t)-before, size)
	pieces := serve(t, daemon, keeper)

	registry.Unplug(t)
	gone := registry.Sent(t)
	for name, peer := range map[string]struct {
		machine *lan.Machine
		host    string
	}{"whole layers": {firstNode, layers}, "pieces": {daemon, pieces}} {
		t.Run(name, func(t *testing.T) {
			second := containerd.StartOn(t, network.Machine(t), containerd.Light)
			before := peer.machine.Sent(t)
			if err := second.PullFrom(ref, peer.host, door.Host); err != nil {
				t.Fatal(err)
			}
			wantSent(t, "the peer to the second node", peer.machine.Sent(t)-before, size)
			sameTree(t, mountTree(t, second.MountPulled(t, ref)), want)
		})
	}
	if got := registry.Sent(t) - gone; got != 0 {
		t.Errorf("got %d bytes from the registry, which is gone", got)
	}
	t.Run("layers that the first node gave up", func(t *testing.T) {
		// What discard_unpacked_layers does after a pull.
		if _, err := first.Ctr("content", "prune", "references"); err != nil {
			t.Fatal(err)
		}
		err := containerd.StartOn(t, network.Machine(t), containerd.Light).PullFrom(ref, layers, door.Host)
		if err == nil || !strings.Contains(err.Error(), "could not fetch content descriptor") {
			t.Errorf("got %v, want an error: the peer has nothing to hand out", err)
		}
	})
}

// wantSent wants a model to have travelled once, with the headers of TCP, HTTP and OCI,
// and says how many bytes that were.
func wantSent(t *testing.T, what string, got, size int64) {
	t.Helper()
	const headers = 1 << 20
	if got < size || got > size+size/20+headers {
		t.Errorf("got %d bytes from %s, want the model's %d, once", got, what, size)
	}
	testenv.Checked(t, 1, "%d bytes from %s, for a model of %d", got, what, size)
}

// serve runs a server on a machine until the test ends, and returns its address.
func serve(t *testing.T, m *lan.Machine, h http.Handler) string {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	_ = server.Listener.Close()
	server.Listener = m.Listen(t, 0)
	server.Start()
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// writeWeights writes an unpacked carton with n weights of so many bytes.
func writeWeights(t testing.TB, dir string, n int, size int64) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "model"), 0o755); err != nil {
		t.Fatal(err)
	}
	var list strings.Builder
	list.WriteString("carton.toml=" + hexSum(info) + "\n")
	for i := range n {
		name := fmt.Sprintf("model/part%d.bin", i)
		f, err := os.Create(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		h := sha256.New()
		seed := [32]byte{byte(i)}
		_, err = io.CopyN(io.MultiWriter(f, h), rand.NewChaCha8(seed), size)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		list.WriteString(name + "=" + hexOf(h) + "\n")
	}
	for name, content := range map[string]string{"carton.toml": info, "MANIFEST": list.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
