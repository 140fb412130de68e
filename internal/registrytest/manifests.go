package registrytest

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

type manifest struct {
	mediaType string
	content   []byte
}

// AddManifest puts a manifest into a repository, under its digest and the tags,
// whatever it says.
func (r *Registry) AddManifest(repo, mediaType string, content []byte, tags ...string) ocispec.Descriptor {
	r.mu.Lock()
	defer r.mu.Unlock()
	dgst := digest.FromBytes(content)
	if r.manifests[repo] == nil {
		r.manifests[repo] = make(map[digest.Digest]manifest)
		r.tags[repo] = make(map[string]digest.Digest)
	}
	r.manifests[repo][dgst] = manifest{mediaType, content}
	for _, tag := range tags {
		r.tags[repo][tag] = dgst
	}
	return ocispec.Descriptor{MediaType: mediaType, Digest: dgst, Size: int64(len(content))}
}

// Manifest returns what a tag or digest of a repository points to.
func (r *Registry) Manifest(repo, reference string) (dgst digest.Digest, content []byte, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	dgst = digest.Digest(reference)
	if !strings.Contains(reference, ":") {
		dgst = r.tags[repo][reference]
	}
	m, ok := r.manifests[repo][dgst]
	return dgst, m.content, ok
}

func (r *Registry) serveManifest(w http.ResponseWriter, req *http.Request, repo, name string) {
	switch req.Method {
	case http.MethodGet, http.MethodHead:
		r.getManifest(w, req, repo, name)
	case http.MethodPut:
		r.putManifest(w, req, repo, name)
	case http.MethodDelete:
		r.deleteManifest(w, repo, name)
	default:
		fail(w, http.StatusMethodNotAllowed, "UNSUPPORTED", "the operation is unsupported")
	}
}

func (r *Registry) getManifest(w http.ResponseWriter, req *http.Request, repo, name string) {
	if q := r.conf.Quirks; req.Method == http.MethodHead && q.NoManifestHead != 0 {
		w.WriteHeader(q.NoManifestHead)
		return
	}
	dgst, content, ok := r.Manifest(repo, name)
	if !ok {
		fail(w, http.StatusNotFound, "MANIFEST_UNKNOWN", "manifest unknown")
		return
	}
	r.mu.Lock()
	mediaType := r.manifests[repo][dgst].mediaType
	r.mu.Unlock()
	if accept := strings.Join(req.Header.Values("Accept"), ","); accept != "" && !strings.Contains(accept, mediaType) && !strings.Contains(accept, "*/*") {
		fail(w, http.StatusNotFound, "MANIFEST_UNKNOWN", "not in a form that is accepted")
		return
	}
	r.digestHeader(w, dgst)
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	if req.Method == http.MethodGet {
		_, _ = w.Write(content)
	}
}

func (r *Registry) putManifest(w http.ResponseWriter, req *http.Request, repo, name string) {
	content, err := io.ReadAll(io.LimitReader(req.Body, 4<<20+1))
	if err != nil {
		return
	}
	if len(content) > 4<<20 {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	dgst := digest.FromBytes(content)
	if strings.Contains(name, ":") && name != dgst.String() {
		fail(w, http.StatusBadRequest, "DIGEST_INVALID", "provided digest did not match uploaded content")
		return
	}
	if r.refusesManifest(w, content) {
		return
	}
	if missing := r.missing(repo, content); missing != "" && !r.conf.Quirks.AnyManifest {
		fail(w, http.StatusNotFound, "MANIFEST_BLOB_UNKNOWN", "manifest names the blob "+missing+", which is not here")
		return
	}
	var tags []string
	if !strings.Contains(name, ":") {
		tags = []string{name}
	}
	r.AddManifest(repo, req.Header.Get("Content-Type"), content, tags...)
	if subject := subjectOf(content); subject != "" && (r.conf.Quirks.Referrers || r.conf.Quirks.ReferrersLost) {
		w.Header().Set("OCI-Subject", subject.String())
	}
	r.digestHeader(w, dgst)
	w.Header().Set("Location", "/v2/"+repo+"/manifests/"+dgst.String())
	w.WriteHeader(http.StatusCreated)
}

// missing returns the first blob that an image manifest names and the
// repository does not hold: who pushes sends the image manifest last.
func (r *Registry) missing(repo string, content []byte) string {
	var m ocispec.Manifest
	if err := json.Unmarshal(content, &m); err != nil || m.Config.Digest == "" {
		return ""
	}
	for _, d := range append(slices.Clone(m.Layers), m.Config) {
		if _, ok := r.find(repo, d.Digest); !ok {
			return d.Digest.String()
		}
	}
	return ""
}
