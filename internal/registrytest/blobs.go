package registrytest

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// AddBlob puts a blob into a repository and returns its descriptor.
func (r *Registry) AddBlob(repo string, b []byte) ocispec.Descriptor {
	dgst := digest.FromBytes(b)
	r.Corrupt(repo, dgst, b)
	return ocispec.Descriptor{MediaType: "application/octet-stream", Digest: dgst, Size: int64(len(b))}
}

// Corrupt puts a blob into a repository under a digest that it may not have.
func (r *Registry) Corrupt(repo string, dgst digest.Digest, b []byte) {
	name := r.newFile()
	if err := os.WriteFile(name, b, 0o600); err != nil {
		panic(err)
	}
	r.store(repo, dgst, name)
}

// Blob returns a blob's bytes, false where the repository has none.
func (r *Registry) Blob(repo string, dgst digest.Digest) ([]byte, bool) {
	name, ok := r.find(repo, dgst)
	if !ok {
		return nil, false
	}
	b, err := os.ReadFile(name)
	return b, err == nil
}

func (r *Registry) newFile() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.serial++
	return filepath.Join(r.dir, fmt.Sprintf("f%d", r.serial))
}

func (r *Registry) store(repo string, dgst digest.Digest, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.blobs[repo] == nil {
		r.blobs[repo] = make(map[digest.Digest]string)
	}
	r.blobs[repo][dgst] = name
}

func (r *Registry) find(repo string, dgst digest.Digest) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name, ok := r.blobs[repo][dgst]
	return name, ok
}

func (r *Registry) serveBlob(w http.ResponseWriter, req *http.Request, repo, name string) {
	dgst := digest.Digest(name)
	file, ok := r.find(repo, dgst)
	q := r.conf.Quirks
	switch {
	case req.Method != http.MethodGet && req.Method != http.MethodHead:
		fail(w, http.StatusMethodNotAllowed, "UNSUPPORTED", "the operation is unsupported")
	case req.Method == http.MethodHead && q.NoHead != 0:
		w.WriteHeader(q.NoHead)
	case !ok:
		fail(w, http.StatusNotFound, "BLOB_UNKNOWN", "blob unknown to registry")
	case req.Method == http.MethodGet && q.CDN:
		http.Redirect(w, req, r.presign(file, dgst), http.StatusTemporaryRedirect)
	default:
		r.digestHeader(w, dgst)
		r.serveFile(w, req, file)
	}
}

func (r *Registry) serveFile(w http.ResponseWriter, req *http.Request, file string) {
	if r.conf.Quirks.NoRanges {
		req.Header.Del("Range")
	}
	f, err := os.Open(file)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, req, "", time.Time{}, f)
}

func (r *Registry) digestHeader(w http.ResponseWriter, dgst digest.Digest) {
	if q := r.conf.Quirks; q.DigestHeader != "" {
		w.Header().Set("Docker-Content-Digest", q.DigestHeader)
	} else if !q.NoDigestHeader {
		w.Header().Set("Docker-Content-Digest", dgst.String())
	}
}

// presign returns an address at the CDN that is good for one request.
func (r *Registry) presign(file string, dgst digest.Digest) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.serial++
	key := fmt.Sprintf("%d", r.serial)
	r.presigned[key] = dgst
	return r.cdn.URL + "/cdn/" + filepath.Base(file) + "?signature=" + key
}

func (r *Registry) serveCDN(w http.ResponseWriter, req *http.Request) {
	key := req.URL.Query().Get("signature")
	r.mu.Lock()
	_, ok := r.presigned[key]
	delete(r.presigned, key)
	r.mu.Unlock()
	switch {
	case req.Header.Get("Authorization") != "":
		http.Error(w, "Only one auth mechanism allowed", http.StatusBadRequest)
	case !ok:
		http.Error(w, "Request has expired", http.StatusForbidden)
	default:
		r.serveFile(w, req, filepath.Join(r.dir, filepath.Base(req.URL.Path)))
	}
}
