package hubtest

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// resolve answers for a file at a revision: resolve/REV/PATH, or raw/REV/PATH.
func (h *Hub) resolve(w http.ResponseWriter, r *http.Request, repo *repo, parts []string) {
	if len(parts) < 3 {
		http.NotFound(w, r)
		return
	}
	if h.limited(w) {
		return
	}
	c, f := h.find(w, repo, parts[1], strings.Join(parts[2:], "/"))
	if f == nil {
		return
	}
	head := w.Header()
	head.Set("X-Repo-Commit", c.sha)
	head.Set("Accept-Ranges", "bytes")
	switch {
	case parts[0] == "raw" && f.Large:
		h.send(w, r, f.pointer(f.hash), f.git)
	case parts[0] == "raw":
		h.content(w, r, f)
	case f.Large:
		h.toStorage(w, r, f)
	default:
		escaped := (&url.URL{Path: f.Path}).EscapedPath()
		head.Set("ETag", strconv.Quote(f.git))
		head.Set("X-Linked-Size", strconv.FormatInt(f.size(), 10))
		w.Header()["Location"] = []string{fmt.Sprintf("%s/api/resolve-cache/models/%s/%s/%s?etag=%%22%s%%22", h.conf.Path, repo.name, c.sha, escaped, f.git)}
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
}

// find finds a file, or says what is not there.
func (h *Hub) find(w http.ResponseWriter, repo *repo, revision, name string) (*commit, *listed) {
	c := h.commit(repo, revision)
	if c == nil {
		refuse(w, http.StatusNotFound, "RevisionNotFound", "Invalid rev id: "+revision)
		return nil, nil
	}
	for _, f := range c.files {
		if f.Path == name {
			return c, f
		}
	}
	w.Header().Set("X-Repo-Commit", c.sha)
	refuse(w, http.StatusNotFound, "EntryNotFound", "Entry not found")
	return c, nil
}

// toStorage leads to a signed address.
func (h *Hub) toStorage(w http.ResponseWriter, r *http.Request, f *listed) {
	h.mu.Lock()
	h.serial++
	signature := fmt.Sprintf("%064x", h.serial)
	h.addresses[signature] = &address{file: f}
	h.mu.Unlock()
	head := w.Header()
	head.Set("ETag", strconv.Quote(f.hash))
	head.Set("X-Linked-Etag", strconv.Quote(f.hash))
	head.Set("X-Linked-Size", strconv.FormatInt(f.size(), 10))
	if h.conf.Xet {
		head.Set("X-Xet-Hash", f.hash)
	}
	http.Redirect(w, r, fmt.Sprintf("%s/repos/ab/cd/%s?X-Amz-Expires=3600&X-Amz-Signature=%s&X-Amz-SignedHeaders=host", h.Storage, f.hash, signature), http.StatusFound)
}

// small answers for a file that the hub keeps itself.
func (h *Hub) small(w http.ResponseWriter, r *http.Request, repo *repo, parts []string) {
	if len(parts) < 2 || r.URL.Query().Get("etag") == "" {
		http.Error(w, "the query is gone", http.StatusBadRequest)
		return
	}
	c, f := h.find(w, repo, parts[0], strings.Join(parts[1:], "/"))
	if f == nil {
		return
	}
	w.Header().Set("X-Repo-Commit", c.sha)
	h.content(w, r, f)
}

func (h *Hub) content(w http.ResponseWriter, r *http.Request, f *listed) {
	w.Header().Set("ETag", strconv.Quote(f.git))
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	f.serve(counted{w, &h.Small}, r)
}

func (h *Hub) send(w http.ResponseWriter, r *http.Request, text, etag string) {
	w.Header().Set("ETag", strconv.Quote(etag))
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(text))
}

// serveStorage answers for the host of the large files: it knows nothing but what
// was signed, and calls content by names of its own.
func (h *Hub) serveStorage(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	a := h.addresses[r.URL.Query().Get("X-Amz-Signature")]
	if a != nil {
		if a.uses++; h.conf.AddressUses > 0 && a.uses > h.conf.AddressUses {
			a = nil
		}
	}
	h.mu.Unlock()
	if r.Header.Get("Authorization") != "" {
		h.Leaked.Add(1)
		http.Error(w, "Only one auth mechanism allowed", http.StatusBadRequest)
		return
	}
	if a == nil {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>")
		return
	}
	w.Header().Set("ETag", `"`+strings.Repeat("e", 24)+a.file.hash[:40]+`"`)
	w.Header().Set("Content-Type", "application/octet-stream")
	a.file.serve(counted{w, &h.Sent}, r)
}

// serve sends the content. Of nothing there is no range, and clients learn the size
// from one.
func (f *listed) serve(w http.ResponseWriter, r *http.Request) {
	if f.size() == 0 && r.Header.Get("Range") != "" {
		w.Header().Set("Content-Range", "bytes */0")
	}
	http.ServeContent(w, r, "", time.Time{}, f.open())
}

// counted counts the bytes of an answer.
type counted struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c counted) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.n.Add(int64(n))
	return n, err
}
