package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/httprange"
	"github.com/carton-oci/carton-oci/internal/ranges"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// file is one file of a snapshot.
type file struct {
	snapshot *Snapshot
	path     string
	size     int64
	hash     string // sha256 of a large file
	git      string // git's hash of any other

	turn   chan struct{} // held by who asks for an address
	target atomic.Pointer[target]
	plain  atomic.Bool // the server gives no ranges of it
}

// target is the signed address of a file in the hub's storage.
type target struct {
	url *url.URL
	via *http.Response // the redirect that led there
}

// openRange opens n bytes of the content, from off. Where that is all of a file that
// the list has no sha256 of, the end is only reached if it has git's hash.
func (f *file) openRange(ctx context.Context, off, n int64) (io.ReadCloser, error) {
	if n == 0 {
		return io.NopCloser(strings.NewReader("")), nil
	}
	if r := f.openCached(off, n); r != nil {
		return r, nil
	}
	if n > 2*pieceBytes && !f.plain.Load() {
		r, err := f.openAhead(ctx, off, n)
		if !errors.Is(err, ranges.ErrNone) || ranges.IsOnly(ctx) {
			return r, err
		}
		f.plain.Store(true)
	}
	body, err := f.openBody(ctx, off, n)
	if err != nil {
		return nil, err
	}
	if f.git != "" && off == 0 && n == f.size {
		return newGitVerifier(body, f), nil
	}
	return body, nil
}

// openBody opens a range by one request, and as many more as it takes.
func (f *file) openBody(ctx context.Context, off, n int64) (io.ReadCloser, error) {
	c := f.snapshot.client
	g := &httprange.Getter{Do: f.do, Policy: c.policy, Answered: &c.answered, CheckResponse: f.refusal}
	body, err := g.Open(ctx, f.newRequest, off, n, f.size)
	if err != nil {
		return nil, c.advise(err)
	}
	return body, nil
}

// newRequest asks the hub for the content.
func (f *file) newRequest(ctx context.Context) (*http.Request, error) {
	c, s := f.snapshot.client, f.snapshot
	all := append(segments(s.Repository), "resolve", s.Commit)
	return c.newRequest(ctx, c.url(append(all, segments(f.path)...)...))
}

// do sends a request for the content to the storage's address that is known, and
// else to the hub, which names one. One at a time asks the hub.
func (f *file) do(req *http.Request) (*http.Response, error) {
	for range 3 {
		if t := f.target.Load(); t != nil {
			resp, err := f.fetch(req, t)
			if err != nil || !forgotten(resp.StatusCode) {
				return resp, err
			}
			resp.Body.Close()
			f.target.CompareAndSwap(t, nil)
		}
		select {
		case f.turn <- struct{}{}:
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
		if f.target.Load() == nil {
			resp, err := f.ask(req)
			<-f.turn
			return resp, err
		}
		<-f.turn // somebody else has asked
	}
	return f.ask(req)
}

// forgotten reports whether a storage's answer may mean that the address was signed
// too long ago.
func forgotten(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone:
		return true
	}
	return false
}

// fetch sends a request to the storage's address, with nothing of the user's in it.
func (f *file) fetch(req *http.Request, t *target) (*http.Response, error) {
	again := req.Clone(req.Context())
	again.URL, again.Host = t.url, ""
	again.Header.Del("Authorization")
	again.Response = t.via // so that the address is judged as a redirect's
	return f.snapshot.client.do(again)
}

// ask sends a request to the hub, and remembers where that led.
func (f *file) ask(req *http.Request) (*http.Response, error) {
	c := f.snapshot.client
	resp, err := c.do(req)
	if err != nil || resp.StatusCode >= 400 {
		return resp, err
	}
	if err := f.check(resp); err != nil {
		resp.Body.Close()
		return nil, err
	}
	if at := resp.Request; !c.isEndpoint(at.URL) {
		f.target.Store(&target{at.URL, at.Response})
	}
	return resp, nil
}

// check compares what the hub says of a file on the way to its content with the
// list.
func (f *file) check(resp *http.Response) error {
	for r := resp; r != nil && r.Request != nil; r = r.Request.Response {
		if !f.snapshot.client.isEndpoint(r.Request.URL) {
			continue // the storage has marks of its own
		}
		h := r.Header
		etag := strings.Trim(strings.TrimPrefix(h.Get("X-Linked-Etag"), "W/"), `"`)
		size, err := strconv.ParseInt(h.Get("X-Linked-Size"), 10, 64)
		switch commit := h.Get("X-Repo-Commit"); {
		case commit != "" && commit != f.snapshot.Commit:
			return f.failed(listf("it is said to be of the commit %s, want %s", errtext.Quote(commit),
				f.snapshot.Commit))
		case etag != "" && f.hash != "" && etag != f.hash:
			return f.failed(listf("its hash is said to be %s, and the list says %s", errtext.Quote(etag), f.hash))
		case err == nil && size != f.size:
			return f.failed(listf("its size is said to be %d, and the list says %d", size, f.size))
		}
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // "" is any other
	if kind == "application/vnd.xet-fileinfo+json" {
		return f.failed(hint.With(errXet, "download it with the hub's own tool, hf download, and push the folder"))
	}
	return nil
}

// errXet is for content that is given by another protocol.
var errXet = httprange.Final("the hub gives the file by its xet protocol alone, which carton-oci does not speak")

// largest is the largest file that the hub's storage gives by HTTP.
// https://github.com/huggingface/huggingface_hub/issues/4330
const largest = 400e9

// refusal is the client's, about a file.
func (f *file) refusal(resp *http.Response) error {
	if resp.StatusCode == http.StatusBadRequest && f.size > largest {
		return hint.With(errXet, "files over %s are given so: the hub's own tool, hf download, fetches them",
			errtext.Size(largest))
	}
	return f.snapshot.client.refusal(resp)
}

func (f *file) failed(err error) error { return fmt.Errorf("%s: %w", errtext.Quote(f.path), err) }

// errGit is for a file that is not the one in the list.
func (f *file) errGit(got string) error {
	return &carton.Error{
		Path: f.path, Kind: carton.ErrChecksum,
		Msg: fmt.Sprintf("the hub sent content with the git hash %s, and lists %s", got, f.git),
	}
}
