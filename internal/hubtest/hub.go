package hubtest

import (
	"crypto/sha1" // git's
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Config says what kind of hub it is. The zero value lets anybody read everything.
type Config struct {
	// Token is the one that private and gated repositories want.
	Token string
	// PageSize is how many entries of a tree a page has; 0 is 1,000.
	PageSize int
	// AddressUses is how many requests a signed address serves; 0 is any number.
	AddressUses int
	// Resolves is how many files may be asked for within Window; 0 is any number.
	Resolves int
	Window   time.Duration
	// NextHost is the host that links to further pages name; "" is the hub's.
	NextHost string
	// Path is in front of every address of the hub, "" or "/a/b".
	Path string
	// Xet marks large files as ones that xet has, too.
	Xet bool
}

// Hub is a running hub. It stops when its test does.
type Hub struct {
	// URL is the endpoint, Storage that of the host with the large files.
	URL, Storage string
	// Hook, where it is set, sees every request first, of either host, and reports
	// whether it has answered. Set it before the first request.
	Hook func(w http.ResponseWriter, r *http.Request) bool
	// Calls counts requests to the API, Resolved those for files, Sent the bytes of
	// large files, Small those of the others, Leaked the requests that brought a
	// token to the storage.
	Calls, Resolved, Sent, Small, Leaked atomic.Int64

	conf Config
	busy sync.WaitGroup

	mu        sync.Mutex
	repos     map[string]*repo // by name in lower case
	addresses map[string]*address
	serial    int
	window    []time.Time
}

type repo struct {
	name                     string
	private, gated, disabled bool
	refs                     map[string]string // to commits
	commits                  map[string]*commit
}

type commit struct {
	sha   string
	files []*listed
}

// listed is a file with what the list says of it.
type listed struct {
	File
	hash, git string // as they are
}

// address is a signed one.
type address struct {
	file *listed
	uses int
}

// New starts a hub.
func New(t testing.TB, conf Config) *Hub {
	t.Helper()
	h := &Hub{conf: conf, repos: map[string]*repo{}, addresses: map[string]*address{}}
	front, storage := httptest.NewServer(h.hooked(h.serve)), httptest.NewServer(h.hooked(h.serveStorage))
	t.Cleanup(front.Close)
	t.Cleanup(storage.Close)
	h.URL, h.Storage = front.URL+conf.Path, storage.URL
	return h
}

func (h *Hub) hooked(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h.busy.Add(1)
		defer h.busy.Done()
		if h.Hook == nil || !h.Hook(w, r) {
			serve(w, r)
		}
	}
}

// Commit adds a commit of these files to a repository, and moves the branch main
// there. It returns the commit's hash.
func (h *Hub) Commit(name string, files ...File) string {
	c := &commit{}
	all := sha1.New()
	for _, f := range files {
		l := &listed{File: f}
		l.hash, l.git = l.sums()
		fmt.Fprintln(all, f.Path, l.git, f.ListedHash, f.ListedGit, f.ListedSize)
		c.files = append(c.files, l)
	}
	slices.SortFunc(c.files, func(a, b *listed) int { return strings.Compare(a.Path, b.Path) })
	c.sha = hex.EncodeToString(all.Sum(nil))
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.repo(name)
	r.commits[c.sha], r.refs["main"] = c, c.sha
	return c.sha
}

// repo finds or makes a repository. h.mu is held.
func (h *Hub) repo(name string) *repo {
	r := h.repos[strings.ToLower(name)]
	if r == nil {
		r = &repo{name: name, refs: map[string]string{}, commits: map[string]*commit{}}
		h.repos[strings.ToLower(name)] = r
	}
	return r
}

// Ref makes a branch or tag stand for a commit.
func (h *Hub) Ref(name, ref, sha string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.repo(name).refs[ref] = sha
}

// Rename gives a repository another name; the old one leads there.
func (h *Hub) Rename(name, to string) {
	h.change(name, func(r *repo) {
		r.name = to
		h.repos[strings.ToLower(to)] = r
	})
}

// Private makes a repository one for who has the token, Gate one whose readers have
// to be granted access, Disable one that nobody reads any more.
func (h *Hub) Private(name string) { h.change(name, func(r *repo) { r.private = true }) }

// Gate is described at Private.
func (h *Hub) Gate(name string) { h.change(name, func(r *repo) { r.gated = true }) }

// Disable is described at Private.
func (h *Hub) Disable(name string) { h.change(name, func(r *repo) { r.disabled = true }) }

func (h *Hub) change(name string, to func(*repo)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	to(h.repo(name))
}

// Quiet waits until no answer is under way.
func (h *Hub) Quiet() { h.busy.Wait() }

// Forget makes the storage refuse every address that was signed until now.
func (h *Hub) Forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.addresses)
}
