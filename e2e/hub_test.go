package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	"github.com/carton-oci/carton-oci/internal/hubtest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// The promise: a repository of a hub goes to a registry by its name, through little
// memory and no disk; what either side had when it was ended travels no second time;
// and a new revision costs what changed.

const (
	// hubBytes is the size of a repository's weights, in four shards;
	// CARTON_OCI_HUB_BYTES says otherwise (make e2e-hub).
	hubBytes = 160 << 20
	// besideWeightsBytes is what may be read or sent besides weights.
	besideWeightsBytes = 2 << 20
)

func hubSize(t testing.TB) int64 {
	t.Helper()
	text := os.Getenv("CARTON_OCI_HUB_BYTES")
	if text == "" {
		return hubBytes
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// shards are the files of a repository with weights of so many bytes. changed is the
// number of the shard that differs from those of others.
func shards(size int64, changed uint64) []hubtest.File {
	files := []hubtest.File{
		{Path: "README.md", Content: "---\nlicense: apache-2.0\n---\n# A model\n"},
		{Path: "config.json", Content: `{"model_type":"llama"}`},
		{Path: ".gitattributes", Content: "*.safetensors filter=lfs diff=lfs merge=lfs -text\n"},
		{Path: "tokenizer.json", Content: random("tokenizer", 700_000)},
	}
	for i := range uint64(4) {
		seed := i
		if i == changed {
			seed += 100
		}
		files = append(files, hubtest.Safetensors(fmt.Sprintf("model-%05d-of-00004.safetensors", i+1), size/4, seed))
	}
	return files
}

// hubUser is a user for whom a hub is the hub.
func hubUser(t testing.TB, h *hubtest.Hub, env ...string) *user {
	t.Helper()
	return newUser(t).with(append([]string{"HF_ENDPOINT=" + h.URL}, env...)...)
}

func (u *user) pushHub(t testing.TB, args ...string) pushed {
	t.Helper()
	r := u.must(t, append([]string{"push", "--format", "json", "--runner", "noop", "--debug"}, args...)...)
	checkPeak(t, r)
	var p pushed
	if err := json.Unmarshal([]byte(r.stdout), &p); err != nil {
		t.Fatalf("%v: %s", err, r.stdout)
	}
	return p
}

func TestFromAHubToARegistry(t *testing.T) {
	size := hubSize(t)
	h := hubtest.New(t, hubtest.Config{AddressUses: 50, PageSize: 3})
	commit := h.Commit("org/model", shards(size, 9)...)
	s := startHubTarget(t, size, func(h http.Handler) http.Handler { return h })
	u := hubUser(t, h)
	ref := s.host + "/org/model"

	w := startWatch(t, u.dir, u.tmp, u.cache, u.home)
	first := u.pushHub(t, "hf:org/model", ref+":1")
	for name, n := range w.end() {
		if n > smallFile {
			t.Errorf("wrote %s of %d bytes, want nothing on disk", name, n)
		}
	}
	if got := h.Sent.Load(); got < size || got > size+besideWeightsBytes {
		t.Errorf("the hub sent %d bytes of weights of %d, want each once", got, size)
	}
	if got := s.bytesIn(); got < size || got > size+besideWeightsBytes {
		t.Errorf("the registry got %d bytes of %d, want each once", got, size)
	}
	if n := h.Leaked.Load(); n > 0 {
		t.Errorf("the storage was sent a token %d times", n)
	}
	a := s.annotations(t)
	if a["org.opencontainers.image.revision"] != commit || a["org.opencontainers.image.source"] != h.URL+"/org/model" {
		t.Errorf("got the annotations %q", a)
	}
	t.Logf("%d MiB pushed: the hub sent %d MiB, the registry got %d MiB", size>>20, h.Sent.Load()>>20, s.bytesIn()>>20)

	// Again: nothing moves.
	h.Sent.Store(0)
	s.reset()
	if again := u.pushHub(t, "hf:org/model@"+commit, ref+":1"); again.Digest != first.Digest {
		t.Errorf("the second push made %s, want %s", again.Digest, first.Digest)
	}
	if h.Sent.Load() > besideWeightsBytes || s.bytesIn() > besideWeightsBytes {
		t.Errorf("the second push read %d and sent %d bytes, want none", h.Sent.Load(), s.bytesIn())
	}

	// A new revision, in which one shard of four is another.
	h.Commit("org/model", shards(size, 2)...)
	h.Sent.Store(0)
	s.reset()
	second := u.pushHub(t, "hf:org/model", ref+":2")
	if second.ModelHash == first.ModelHash {
		t.Error("the new revision has the old model hash")
	}
	if in, sent := s.bytesIn(), h.Sent.Load(); in > size/4+besideWeightsBytes || sent > size/4+besideWeightsBytes {
		t.Errorf("a new shard of four: the hub sent %d and the registry got %d bytes, want %d", sent, in, size/4)
	}
}

// hubTarget is where a repository is pushed to: a real registry, or where it is
// larger than a disk may hold one that keeps no blobs.
type hubTarget struct {
	host        string
	bytesIn     func() int64
	reset       func()
	annotations func(t *testing.T) map[string]string
}

func startHubTarget(t *testing.T, size int64, around func(http.Handler) http.Handler) hubTarget {
	t.Helper()
	if size <= 1<<30 {
		s := testregistry.Start(t, testregistry.Options{Middleware: around})
		return hubTarget{
			s.Host, func() int64 { s.Traffic.Settle(); return s.Traffic.BlobBytesIn() }, s.Traffic.Reset,
			func(t *testing.T) map[string]string { return fetched(t, s, "org/model", "1").Annotations },
		}
	}
	s := startSink(t, around)
	return hubTarget{s.host, s.got.Load, func() { s.got.Store(0) }, func(t *testing.T) map[string]string {
		t.Helper()
		var m ocispec.Manifest
		if err := json.Unmarshal(s.manifests["1"], &m); err != nil {
			t.Fatal(err)
		}
		return m.Annotations
	}}
}

// cut ends a push once the registry has got so many bytes: one side answers nothing
// any more until it is mended, or the command is killed.
type cut struct {
	at   int64
	side string // "hub", "registry", "command"
	kill context.CancelFunc

	got     atomic.Int64
	reached atomic.Bool
}

func (c *cut) mend() { c.at = math.MaxInt64; c.reached.Store(false) }

// registry is a registry's middleware.
func (c *cut) registry(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.reached.Load() && c.side == "registry" {
			panic(http.ErrAbortHandler)
		}
		r.Body = cutBody{r.Body, c}
		next.ServeHTTP(w, r)
	})
}

// hub is a hub's hook.
func (c *cut) hub(http.ResponseWriter, *http.Request) bool {
	if c.reached.Load() && c.side == "hub" {
		panic(http.ErrAbortHandler)
	}
	return false
}

type cutBody struct {
	io.ReadCloser
	cut *cut
}

func (b cutBody) Read(p []byte) (int, error) {
	c := b.cut
	n, err := b.ReadCloser.Read(p)
	if c.got.Add(int64(n)) >= c.at {
		if c.reached.Store(true); c.side == "command" {
			c.kill()
		}
		if c.side == "registry" {
			return 0, io.ErrUnexpectedEOF
		}
	}
	return n, err
}

// The hub or the registry goes away at half, or the command is killed, and the same
// command goes on.
func TestFromAHubKilledAtHalf(t *testing.T) {
	size := hubSize(t)
	// What is under way when something ends is lost: on the hub's side what was read
	// ahead and not sent, and on both what the registry had not noted.
	lost := int64(40 << 20)
	if size >= 8<<30 {
		lost = size / 50
	}
	for _, side := range []string{"hub", "registry", "command"} {
		t.Run(side, func(t *testing.T) {
			h := hubtest.New(t, hubtest.Config{})
			h.Commit("org/model", shards(size, 9)...)
			ctx, kill := context.WithCancel(t.Context())
			defer kill()
			c := &cut{at: size / 2, side: side, kill: kill}
			h.Hook = c.hub
			s := startHubTarget(t, size, c.registry)
			u := hubUser(t, h)
			args := []string{"push", "hf:org/model", s.host + "/org/model:1", "--runner", "noop", "--retries", "1"}
			cmd := exec.CommandContext(ctx, cartonOCI, args...)
			cmd.Dir, cmd.Env = u.dir, u.env
			if out, err := cmd.CombinedOutput(); err == nil {
				t.Fatalf("nobody ended the push:\n%s", out)
			}
			h.Quiet()
			passed, sent := s.bytesIn(), h.Sent.Load()
			c.mend()
			s.reset()
			h.Sent.Store(0)
			u.pushHub(t, args[1:]...)
			in, again := s.bytesIn(), h.Sent.Load()
			t.Logf("at %d of %d MiB (the hub had sent %d); then the registry got %d and the hub sent %d MiB", passed>>20, size>>20, sent>>20, in>>20, again>>20)
			if most := size/2 + lost; in > most || again > most {
				t.Errorf("the second run: the registry got %d and the hub sent %d bytes, want at most %d", in, again, most)
			}
		})
	}
}

// One model, wherever it is taken from: the hub, a folder that a download made, a
// cache. What comes out of the registry is what the hub has, byte for byte.
func TestOneModelHashForEverybody(t *testing.T) {
	h := hubtest.New(t, hubtest.Config{PageSize: 2})
	files := append(shards(4<<20, 9),
		hubtest.File{Path: "empty"}, hubtest.File{Path: "a/b c/100%.txt", Content: "escaped"}, hubtest.File{Path: "large.bin", Content: "small, and large", Large: true},
		hubtest.File{Path: "a/q?x=1&y#z+%41.txt", Content: "not a query"}, hubtest.File{Path: "original/params.json", Content: "{}"}, hubtest.File{Path: "ünï/ço∂é.txt", Content: "names"},
		hubtest.File{Path: ".hidden", Content: "."}, hubtest.File{Path: "empty.bin", Large: true},
		hubtest.File{Path: "onnx/model.onnx", Content: random("onnx", 100_000), Large: true},
	)
	commit := h.Commit("org/model", files...)
	u := hubUser(t, h)
	folder, cache := u.path("download"), u.path("caches/models--org--model")
	want := map[string]string{}
	for _, f := range files {
		text := make([]byte, max(f.Size, int64(len(f.Content))))
		if _, err := f.ReadAt(text, 0); err != nil && len(text) > 0 {
			t.Fatal(err)
		}
		putFile(t, filepath.Join(folder, f.Path), text)
		inCache(t, cache, commit, f, text)
		if f.Path != ".gitattributes" {
			want["model/"+f.Path] = string(text)
		}
	}
	putFile(t, filepath.Join(folder, ".cache/huggingface/download/config.json.metadata"), []byte(commit))
	putFile(t, filepath.Join(cache, "refs/main"), []byte(commit))

	s := testregistry.Start(t, testregistry.Options{})
	hashes, digests := map[string]string{}, map[string]string{}
	for name, source := range map[string]string{"hub": "hf:org/model", "folder": "./download", "cache": cache} {
		p := u.pushHub(t, source, s.Host+"/org/"+name+":1")
		hashes[name], digests[name] = p.ModelHash, p.Digest
	}
	if hashes["hub"] != hashes["folder"] || hashes["hub"] != hashes["cache"] || digests["hub"] != digests["cache"] {
		t.Errorf("got the model hashes %q and digests %q, want one", hashes, digests)
	}
	if got := strings.TrimSpace(u.must(t, "pack", "-q", "hf:org/model", "--runner", "noop").stdout); got != "model.carton" {
		t.Errorf("packed %q", got)
	}
	if got := strings.TrimSpace(u.must(t, "inspect", "-q", "model.carton").stdout); got != hashes["hub"] {
		t.Errorf("the packed carton has the model hash %s, want %s", got, hashes["hub"])
	}
	// A carton does not say where it is from: pack says how it is pushed as the
	// repository is, and without that it is what the folder is.
	packed := u.must(t, "pack", "hf:org/model", "--runner", "noop", "--force")
	_, flags, _ := strings.Cut(packed.stderr, " --annotation ")
	says := strings.Fields("--annotation " + flags)
	p := u.push(t, append([]string{"model.carton", s.Host + "/org/packed:1"}, says...)...)
	plain := u.push(t, "model.carton", s.Host+"/org/packed:2")
	if p.Digest != digests["hub"] || plain.Digest != digests["folder"] || plain.Digest == p.Digest {
		t.Errorf("the packed carton has the digest %s with %q and %s without, want those of %q", p.Digest, says, plain.Digest, digests)
	}
	// By its name, out of the cache: the weights alone, or all of it where the hub may
	// not be asked.
	h.Sent.Store(0)
	cached := u.with("HF_HUB_CACHE=" + u.path("caches"))
	if r := cached.must(t, "pack", "hf:org/model", "-o", "cached.carton"); h.Sent.Load() > 0 || !strings.Contains(r.stderr, "are in the cache") {
		t.Errorf("the hub sent %d bytes of what is in the cache:\n%s", h.Sent.Load(), r.stderr)
	}
	calls := h.Calls.Load()
	offline := cached.with("HF_HUB_OFFLINE=1")
	if p := offline.pushHub(t, "hf:org/model", s.Host+"/org/offline:1"); p.Digest != digests["hub"] || h.Calls.Load() != calls {
		t.Errorf("without the hub got %s after %d questions, want %s", p.Digest, h.Calls.Load()-calls, digests["hub"])
	}
	if r := offline.must(t, "ls", "hf:org/model@"+commit); !strings.Contains(r.stdout, "model/config.json") {
		t.Errorf("ls without the hub: got\n%s", r.stdout)
	}
	if r := offline.run(t, "push", "hf:org/none", s.Host+"/org/none:1"); r.code != 4 || !strings.Contains(r.stderr, "HF_HUB_OFFLINE forbids") {
		t.Errorf("what is in no cache: exit code %d:\n%s", r.code, r.stderr)
	}
	u.must(t, "pull", s.Host+"/org/hub:1", "--unpack", "back", "--folder", "model")
	count := 0
	_ = filepath.WalkDir(u.path("back"), func(name string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			count++
		}
		return err
	})
	if count != len(want) {
		t.Errorf("%d files came back of %d", count, len(want))
	}
	for name, text := range want {
		b, err := os.ReadFile(filepath.Join(u.path("back"), strings.TrimPrefix(name, "model/")))
		if err != nil || string(b) != text {
			t.Errorf("%s came back with %d bytes, %v; want %d", name, len(b), err, len(text))
		}
	}
}

func putFile(t testing.TB, name string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// inCache puts a file where the hub's tools keep it.
func inCache(t testing.TB, cache, commit string, f hubtest.File, text []byte) {
	t.Helper()
	blob := hexSum(string(text))
	if !f.Large {
		blob = blob[:40] // any name of that length: nobody takes it for a sha256
	}
	putFile(t, filepath.Join(cache, "blobs", blob), text)
	at := filepath.Join(cache, "snapshots", commit, f.Path)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	up := strings.Repeat("../", 2+strings.Count(f.Path, "/"))
	if err := os.Symlink(up+"blobs/"+blob, at); err != nil {
		t.Fatal(err)
	}
}
