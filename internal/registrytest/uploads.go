package registrytest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
)

// upload is a session: a file that grows. As with real registries, a request
// that hangs does not keep others from asking how far it got.
type upload struct {
	repo, id, file string

	mu     sync.Mutex
	closed bool // nothing more is taken: what a cut request still has comes too late
	turn   int  // counts requests, for NewLocation
	size   int64
	first  int64 // size behind the first chunk, for FirstRange
	small  bool  // a chunk was smaller than MinChunk
}

func (u *upload) length() int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.size
}

func (u *upload) state() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return fmt.Sprint(u.turn)
}

// follows reports whether a chunk may follow, and notes whether it is a small one.
func (u *upload) follows(small bool) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	was := u.small
	u.small = u.small || small
	return !was
}

// began notes where the first chunk ends.
func (u *upload) began() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.first == 0 {
		u.first = u.size
	}
}

// Uploads returns how many uploads are open.
func (r *Registry) Uploads() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.uploads)
}

func (r *Registry) serveUpload(w http.ResponseWriter, req *http.Request, repo, name string) {
	if name == "" {
		if req.Method != http.MethodPost {
			fail(w, http.StatusMethodNotAllowed, "UNSUPPORTED", "the operation is unsupported")
			return
		}
		r.startUpload(w, req, repo)
		return
	}
	r.mu.Lock()
	u := r.uploads[name]
	if r.conf.Quirks.OneShot {
		delete(r.uploads, name)
	}
	r.mu.Unlock()
	if u == nil || u.repo != repo {
		tooLate(w)
		return
	}
	moves := req.Method == http.MethodPatch || req.Method == http.MethodPut
	if r.conf.Quirks.NewLocation && moves && req.URL.Query().Get("_state") != u.state() {
		fail(w, http.StatusRequestedRangeNotSatisfiable, "RANGE_INVALID", "the state is old")
		return
	}
	if r.tooLarge(req) {
		if r.conf.Quirks.ResetLarge {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	switch req.Method {
	case http.MethodGet:
		r.statusOf(w, u)
	case http.MethodPatch:
		r.patch(w, req, u)
	case http.MethodPut:
		r.put(w, req, u)
	case http.MethodDelete:
		r.forget(u)
		w.WriteHeader(http.StatusNoContent)
	default:
		fail(w, http.StatusMethodNotAllowed, "UNSUPPORTED", "the operation is unsupported")
	}
}

// tooLarge reports whether a request's body is over a limit.
func (r *Registry) tooLarge(req *http.Request) bool {
	q := r.conf.Quirks
	return q.MaxRequest > 0 && req.ContentLength > q.MaxRequest ||
		q.MaxBody > 0 && req.Method == http.MethodPut && req.ContentLength > q.MaxBody
}

// startUpload mounts a blob or opens an upload.
func (r *Registry) startUpload(w http.ResponseWriter, req *http.Request, repo string) {
	q := req.URL.Query()
	if mount, from := digest.Digest(q.Get("mount")), q.Get("from"); mount != "" && !r.conf.Quirks.NoMount {
		if file, ok := r.find(from, mount); ok && r.mayPull(req, from) {
			r.store(repo, mount, file)
			r.digestHeader(w, mount)
			w.Header().Set("Location", "/v2/"+repo+"/blobs/"+mount.String())
			w.WriteHeader(http.StatusCreated)
			return
		}
	}
	u := &upload{repo: repo, file: r.newFile()}
	if err := os.WriteFile(u.file, nil, 0o600); err != nil {
		panic(err)
	}
	r.mu.Lock()
	r.serial++
	u.id = fmt.Sprintf("upload-%d", r.serial)
	r.uploads[u.id] = u
	r.mu.Unlock()
	r.locate(w, u)
	w.Header().Set("Range", "0-0")
	if n := r.conf.Quirks.MinChunk; n > 0 {
		w.Header().Set("OCI-Chunk-Min-Length", fmt.Sprint(n))
	}
	if r.conf.Quirks.QuayRange {
		w.Header().Set("Range", "bytes=0--1")
	}
	w.WriteHeader(http.StatusAccepted)
}

// locate says where the upload goes on.
func (r *Registry) locate(w http.ResponseWriter, u *upload) {
	q := r.conf.Quirks
	u.mu.Lock()
	u.turn++
	u.mu.Unlock()
	loc := fmt.Sprintf("%s/v2/%s/blobs/uploads/%s?_state=%s", r.URL, u.repo, u.id, u.state())
	if q.RelativeLocation {
		loc = strings.TrimPrefix(loc, r.URL)
	}
	if q.Location != nil {
		loc = q.Location(loc)
	}
	if loc != "" {
		w.Header().Set("Location", loc)
	}
}

func (r *Registry) statusOf(w http.ResponseWriter, u *upload) {
	q := r.conf.Quirks
	switch {
	case q.NoStatus:
		fail(w, http.StatusMethodNotAllowed, "UNSUPPORTED", "the operation is unsupported")
		return
	case q.QuayRange:
		w.Header().Set("Range", fmt.Sprintf("bytes=0-%d", u.length()))
	default:
		r.locate(w, u)
		w.Header().Set("Range", r.rangeOf(u))
	}
	w.WriteHeader(http.StatusNoContent)
}

func (r *Registry) rangeOf(u *upload) string {
	if r.conf.Quirks.StuckRange {
		return "0-0"
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	size := u.size
	if r.conf.Quirks.FirstRange && u.first > 0 {
		size = u.first
	}
	return fmt.Sprintf("0-%d", max(0, size-1))
}

func (r *Registry) patch(w http.ResponseWriter, req *http.Request, u *upload) {
	q := r.conf.Quirks
	if q.NoPatch != 0 {
		fail(w, q.NoPatch, "UNSUPPORTED", "chunks are not supported")
		return
	}
	if q.MaxPatch > 0 && req.ContentLength > q.MaxPatch || !continues(req, u) || !u.follows(req.ContentLength < q.MinChunk) {
		fail(w, http.StatusRequestedRangeNotSatisfiable, "RANGE_INVALID", "invalid content range")
		return
	}
	keep := req.Body
	if q.PatchKeeps > 0 {
		req.Body = io.NopCloser(io.LimitReader(keep, q.PatchKeeps))
	}
	if !r.grow(req, u) {
		tooLate(w)
		return
	}
	_, _ = io.Copy(io.Discard, keep)
	u.began()
	r.locate(w, u)
	if q.NoPatchLocation {
		w.Header().Del("Location")
	}
	switch now := r.rangeOf(u); {
	case q.NoPatchRange:
	case q.PatchRange != nil:
		w.Header().Set("Range", q.PatchRange(now))
	default:
		w.Header().Set("Range", now)
	}
	status := http.StatusAccepted
	if q.PatchStatus != 0 {
		status = q.PatchStatus
	}
	w.WriteHeader(status)
}

func (r *Registry) put(w http.ResponseWriter, req *http.Request, u *upload) {
	want := digest.Digest(req.URL.Query().Get("digest"))
	switch {
	case want.Validate() != nil:
		fail(w, http.StatusBadRequest, "DIGEST_INVALID", "provided digest is malformed")
		return
	case !continues(req, u):
		fail(w, http.StatusRequestedRangeNotSatisfiable, "RANGE_INVALID", "invalid content range")
		return
	}
	if !r.grow(req, u) {
		tooLate(w)
		return
	}
	u.mu.Lock()
	u.closed = true
	u.mu.Unlock()
	if got := hashFile(u.file); got != want {
		r.forget(u)
		fail(w, http.StatusBadRequest, "DIGEST_INVALID", "provided digest did not match uploaded content")
		return
	}
	r.forget(u)
	r.store(u.repo, want, u.file)
	r.digestHeader(w, want)
	w.Header().Set("Location", "/v2/"+u.repo+"/blobs/"+want.String())
	w.WriteHeader(http.StatusCreated)
}

// continues reports whether a request's Content-Range, where it has one, begins
// where the upload ends.
func continues(req *http.Request, u *upload) bool {
	value := req.Header.Get("Content-Range")
	if value == "" {
		return true
	}
	var first, last int64
	n, err := fmt.Sscanf(value, "%d-%d", &first, &last)
	return err == nil && n == 2 && first == u.length() && last-first+1 == req.ContentLength
}

// tooLate answers to what can't be taken any more: another request has sent the end.
func tooLate(w http.ResponseWriter) {
	fail(w, http.StatusNotFound, "BLOB_UPLOAD_UNKNOWN", "blob upload unknown to registry")
}

// grow appends a body, and keeps what came of one that breaks off: false. So it is
// where the upload is being completed.
func (r *Registry) grow(req *http.Request, u *upload) bool {
	f, err := os.OpenFile(u.file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := req.Body.Read(buf)
		u.mu.Lock()
		if u.closed {
			u.mu.Unlock()
			return false
		}
		if _, werr := f.Write(buf[:n]); werr != nil {
			panic(werr)
		}
		u.size += int64(n)
		u.mu.Unlock()
		if err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

func (r *Registry) forget(u *upload) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.uploads, u.id)
}

func hashFile(name string) digest.Digest {
	f, err := os.Open(name)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		panic(err)
	}
	return digest.Digest("sha256:" + hex.EncodeToString(h.Sum(nil)))
}
