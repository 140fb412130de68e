package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	"github.com/carton-oci/carton-oci/internal/hubtest"
	"github.com/carton-oci/carton-oci/internal/modeltest"
)

// The promise: what takes a model takes a repository of a hub, by its name; and what
// is wrong with one is said, and nothing wrong is pushed.

func TestEveryVerbTakesAHubsRepository(t *testing.T) {
	const token = "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"
	h := hubtest.New(t, hubtest.Config{Token: token, Path: "/gw/a"})
	first := h.Commit("org/model", append(shards(4<<20, 9), hubtest.File{Path: "pytorch_model.bin", Content: random("bin", 90_000), Large: true})...)
	h.Private("org/model")
	s := testregistry.Start(t, testregistry.Options{})
	u := hubUser(t, h, "HF_TOKEN="+token)
	ref := s.Host + "/org/model:1"
	u.must(t, "push", "hf:org/model", ref, "--image", "--exclude", "*.bin")
	for _, ends := range []string{":1", ":1-image"} {
		fetched(t, s, "org/model", strings.TrimPrefix(ends, ":"))
	}
	says := func(want string, args ...string) {
		t.Helper()
		if r := u.must(t, args...); !strings.Contains(r.stdout, want) {
			t.Errorf("carton-oci %s: got\n%s\nwant %q", strings.Join(args, " "), r.stdout, want)
		}
	}
	says("model/pytorch_model.bin", "ls", "hf:org/model")
	says(`"model_type":"llama"`, "cat", "hf:org/model", "model/config.json")
	says("safetensors", "inspect", "hf:org/model@"+first)
	says("U8", "tensors", "hf:org/model")
	says(`"members": 3`, "pack", "hf:org/model", "-o", "one.carton", "--exclude", "*", "--include", "*-00001-*", "--format", "json")
	if r := u.run(t, "diff", "hf:org/model", ref); r.code != 1 || !strings.Contains(r.stdout, "pytorch_model.bin") || strings.Contains(r.stdout, "00004.safetensors") {
		t.Errorf("diff: exit code %d, got\n%s%s", r.code, r.stdout, r.stderr)
	}
	h.Commit("org/model", shards(4<<20, 9)...)
	if r := u.run(t, "diff", ref, "hf:org/model"); r.code != 0 {
		t.Errorf("diff of what was pushed: exit code %d, got\n%s%s", r.code, r.stdout, r.stderr)
	}
	for _, args := range [][]string{{"pull", "hf:org/model"}, {"verify", "hf:org/model"}, {"push", "hf:org/model", "./a.carton"}, {"push", "hf:org/a/b", ref}} {
		if r := u.run(t, args...); r.code != 2 && r.code != 1 || strings.Contains(r.stderr, token) {
			t.Errorf("carton-oci %s: exit code %d\n%s", strings.Join(args, " "), r.code, r.stderr)
		}
	}
	if h.Leaked.Load() > 0 {
		t.Error("the storage was sent the token")
	}
}

// A registry that takes no blob over a limit, in whatever pieces, refuses a folder's
// weights by naming --shard, with which it takes them.
func TestARegistryThatRefusesLargeLayers(t *testing.T) {
	const most = 3 << 20
	var got sync.Map // by upload session: bytes
	s := testregistry.Start(t, testregistry.Options{Middleware: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPut || r.Method == http.MethodPatch {
				n, _ := got.LoadOrStore(r.URL.Path, new(atomic.Int64))
				if strings.Contains(r.URL.Path, "/uploads/") && n.(*atomic.Int64).Add(r.ContentLength) > most {
					http.Error(w, "too large", http.StatusRequestEntityTooLarge)
					return
				}
			}
			next.ServeHTTP(w, r)
		})
	}})
	u := newUser(t)
	putFile(t, u.path("m/model.safetensors"), safetensorsOf(t, 8, 1<<20))
	putFile(t, u.path("m/config.json"), []byte("{}"))
	r := u.run(t, "push", "./m", s.Host+"/org/m:1")
	if r.code != 1 || !strings.Contains(r.stderr, "413") || !strings.Contains(r.stderr, "--shard SIZE cuts") {
		t.Errorf("exit code %d:\n%s", r.code, r.stderr)
	}
	u.must(t, "push", "./m", s.Host+"/org/m:1", "--shard", "3MB")
	if r := u.must(t, "tensors", s.Host+"/org/m:1"); strings.Count(r.stdout, "U8") != 8 {
		t.Errorf("got\n%s", r.stdout)
	}
}

// safetensorsOf is a file of n tensors of size bytes each.
func safetensorsOf(t *testing.T, n int, size int64) []byte {
	t.Helper()
	var tensors []modeltest.Tensor
	for i := range n {
		tensors = append(tensors, modeltest.Tensor{Name: fmt.Sprint("t", i), DType: "U8", Shape: []int64{size}, Data: []byte(random(fmt.Sprint("tensor", i), int(size)))})
	}
	return modeltest.Safetensors(t, nil, tensors...)
}

// A hub's limit is waited for as long as its headers say, and that is said.
func TestAHubsLimitIsWaitedForAndSaid(t *testing.T) {
	h := hubtest.New(t, hubtest.Config{Resolves: 3, Window: 3 * time.Second})
	h.Commit("org/model", shards(4<<20, 9)...)
	s := testregistry.Start(t, testregistry.Options{})
	r := hubUser(t, h).must(t, "push", "hf:org/model", s.Host+"/org/model:1")
	if !regexp.MustCompile(`retry 1 of \d+ in [2-6]s: 429`).MatchString(r.stderr) {
		t.Errorf("got\n%s", r.stderr)
	}
}

// Who reaches the hub and its storage by a proxy alone reaches them.
func TestAHubBehindAProxy(t *testing.T) {
	h := hubtest.New(t, hubtest.Config{})
	behind := map[string]string{"hub.example": h.URL, "storage.example": h.Storage}
	h.Storage = "http://storage.example"
	h.Commit("org/model", shards(4<<20, 9)...)
	var passed atomic.Int64
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		to, err := url.Parse(behind[r.In.Host])
		if err != nil || to.Host == "" {
			t.Errorf("the proxy is asked for %s", r.In.URL)
			to = &url.URL{Scheme: "http", Host: "127.0.0.1:1"}
		}
		passed.Add(1)
		r.SetURL(to)
	}})
	t.Cleanup(proxy.Close)
	s := testregistry.Start(t, testregistry.Options{})
	u := newUser(t).with("HF_ENDPOINT=http://hub.example", "HTTP_PROXY="+proxy.URL)
	u.must(t, "push", "hf:org/model", s.Host+"/org/model:1")
	if passed.Load() < 6 {
		t.Errorf("%d requests went by the proxy", passed.Load())
	}
}

// Whatever is wrong with the hub, the registry has no artifact afterwards, and the
// error says what to do.
func TestNothingWrongOfAHubIsPushed(t *testing.T) {
	const aHash = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	other := strings.Repeat("z", 1<<20)
	weights := hubtest.Safetensors("model.safetensors", 1<<20, 1)
	serve := func(path, text string, headers ...string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, path) {
				return false
			}
			for i := 0; i < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(text))
			return true
		}
	}
	for name, c := range map[string]struct {
		set  func(h *hubtest.Hub)
		code int
		says string
	}{
		"no such repository": {func(*hubtest.Hub) {}, 4, "HF_TOKEN"},
		"gated":              {func(h *hubtest.Hub) { h.Commit("org/model", weights); h.Gate("org/model") }, 5, "gated"},
		"disabled":           {func(h *hubtest.Hub) { h.Commit("org/model", weights); h.Disable("org/model") }, 5, "disabled"},
		"the list's hash is another": {func(h *hubtest.Hub) {
			f := weights
			f.ListedHash = aHash
			h.Commit("org/model", f)
		}, 1, "don't fit together"},
		"the content is another": {func(h *hubtest.Hub) {
			h.Commit("org/model", weights, hubtest.File{Path: "b.bin", Content: strings.Repeat("b", 1<<20), Large: true})
			h.Hook = func(w http.ResponseWriter, r *http.Request) bool {
				return strings.HasPrefix(r.URL.Path, "/repos/") && !strings.Contains(r.Header.Get("Range"), "bytes=0-") &&
					serve("/repos/", other)(w, r) || strings.HasSuffix(r.URL.Path, "b.bin") && serve("", other)(w, r)
			}
		}, 3, "got sha256"},
		"xet alone": {func(h *hubtest.Hub) {
			h.Commit("org/model", weights)
			h.Hook = serve(".safetensors", "{}", "Content-Type", "application/vnd.xet-fileinfo+json")
		}, 1, "xet"},
		"a pointer": {func(h *hubtest.Hub) {
			h.Commit("org/model", hubtest.File{Path: "a.txt", Content: "version https://git-lfs.github.com/spec/v1\noid sha256:" + aHash + "\nsize 7\n"})
		}, 3, "pointer"},
		"a pointer for a large file": {func(h *hubtest.Hub) {
			h.Commit("org/model", weights)
			h.Hook = serve("/repos/", "version https://git-lfs.github.com/spec/v1\noid sha256:"+aHash+"\nsize 1048576\n")
		}, 1, "model.safetensors"},
		"the list's size is another": {func(h *hubtest.Hub) {
			f := weights
			f.ListedSize = 2 << 20
			h.Commit("org/model", f)
		}, 1, "its size is said to be 1048576, and the list says 2097152"},
		"a file of another commit": {func(h *hubtest.Hub) {
			h.Commit("org/model", weights)
			h.Hook = serve("/resolve/", "x", "X-Repo-Commit", aHash[:40])
		}, 1, "it is said to be of the commit"},
		"429 for an hour": {func(h *hubtest.Hub) {
			h.Commit("org/model", weights)
			h.Hook = func(w http.ResponseWriter, r *http.Request) bool {
				if strings.Contains(r.URL.Path, "/resolve/") {
					w.Header().Set("RateLimit", `"resolvers";r=0;t=3600`)
					w.WriteHeader(http.StatusTooManyRequests)
				}
				return strings.Contains(r.URL.Path, "/resolve/")
			}
		}, 1, "with a token, in HF_TOKEN, they are higher"},
		"a name with ..": {func(h *hubtest.Hub) { h.Commit("org/model", hubtest.File{Path: "a/../../b", Content: "x"}) }, 3, ".."},
		"5xx for ever": {func(h *hubtest.Hub) {
			h.Commit("org/model", weights)
			h.Hook = func(w http.ResponseWriter, r *http.Request) bool {
				if strings.Contains(r.URL.Path, "/resolve/") {
					http.Error(w, "busy", http.StatusServiceUnavailable)
					return true
				}
				return false
			}
		}, 1, "gave up"},
	} {
		t.Run(name, func(t *testing.T) {
			h := hubtest.New(t, hubtest.Config{})
			c.set(h)
			s := testregistry.Start(t, testregistry.Options{})
			u := hubUser(t, h)
			r := u.run(t, "push", "hf:org/model", s.Host+"/org/model:1", "--runner", "noop", "--retries", "1")
			if r.code != c.code || !strings.Contains(r.stderr, c.says) {
				t.Errorf("exit code %d, want %d, with %q:\n%s", r.code, c.code, c.says, r.stderr)
			}
			if n := s.Traffic.Count("PUT", testregistry.Manifest); n > 0 {
				t.Errorf("%d image manifests were pushed", n)
			}
		})
	}
}
