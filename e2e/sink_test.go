package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// sink is a registry that hashes what it is sent and keeps manifests alone: for
// pushes that are larger than a disk.
type sink struct {
	host string
	got  atomic.Int64 // bytes of blobs

	mu        sync.Mutex
	blobs     map[string]int64 // sizes, by digest
	manifests map[string][]byte
	uploads   map[string]*sinkUpload
}

type sinkUpload struct {
	mu   sync.Mutex
	hash hash.Hash
	size int64
}

func startSink(t testing.TB, around func(http.Handler) http.Handler) *sink {
	t.Helper()
	s := &sink{blobs: map[string]int64{}, manifests: map[string][]byte{}, uploads: map[string]*sinkUpload{}}
	server := httptest.NewServer(around(s))
	t.Cleanup(server.Close)
	s.host = strings.TrimPrefix(server.URL, "http://")
	return s
}

// ServeHTTP implements as much of a registry as a push asks for.
func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	dir, name := r.URL.Path, ""
	if i := strings.LastIndexByte(dir, '/'); i >= 0 {
		dir, name = dir[:i], dir[i+1:]
	}
	switch {
	case strings.HasSuffix(dir, "/blobs/uploads"):
		s.upload(w, r, name)
	case strings.HasSuffix(dir, "/blobs"):
		s.mu.Lock()
		size, ok := s.blobs[name]
		s.mu.Unlock()
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	case strings.HasSuffix(dir, "/manifests"):
		s.manifest(w, r, name)
	default:
		w.Header().Set("Docker-Distribution-API-Version", "registry/2.0")
	}
}

func (s *sink) upload(w http.ResponseWriter, r *http.Request, id string) {
	s.mu.Lock()
	if r.Method == http.MethodPost {
		id = strconv.Itoa(len(s.uploads) + 1)
		s.uploads[id] = &sinkUpload{hash: sha256.New()}
	}
	u := s.uploads[id]
	s.mu.Unlock()
	if u == nil {
		http.NotFound(w, r)
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if r.Method == http.MethodPut || r.Method == http.MethodPatch {
		n, err := io.CopyBuffer(struct{ io.Writer }{u.hash}, struct{ io.Reader }{r.Body}, make([]byte, 256<<10))
		u.size += n
		s.got.Add(n)
		if err != nil {
			return
		}
	}
	repository, _, _ := strings.Cut(r.URL.Path, "/blobs/uploads")
	w.Header().Set("Location", repository+"/blobs/uploads/"+id)
	w.Header().Set("Range", fmt.Sprintf("0-%d", max(u.size-1, 0)))
	switch digest := r.URL.Query().Get("digest"); r.Method {
	case http.MethodGet:
		w.WriteHeader(http.StatusNoContent)
	case http.MethodPut:
		if got := "sha256:" + hex.EncodeToString(u.hash.Sum(nil)); got != digest {
			http.Error(w, "DIGEST_INVALID", http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		s.blobs[digest] = u.size
		s.mu.Unlock()
		w.WriteHeader(http.StatusCreated)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

func (s *sink) manifest(w http.ResponseWriter, r *http.Request, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == http.MethodPut {
		b, _ := io.ReadAll(r.Body)
		digest := "sha256:" + hexSum(string(b))
		s.manifests[name], s.manifests[digest] = b, b
		w.Header().Set("Docker-Content-Digest", digest)
		w.WriteHeader(http.StatusCreated)
		return
	}
	b := s.manifests[name]
	if b == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
	w.Header().Set("Docker-Content-Digest", "sha256:"+hexSum(string(b)))
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(b) // the client may be gone
	}
}
