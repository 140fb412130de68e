package registrytest

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Tags returns the tags of a repository, sorted.
func (r *Registry) Tags(repo string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.tags[repo]))
}

func (r *Registry) serveTags(w http.ResponseWriter, req *http.Request, repo string) {
	if r.empty(repo) {
		fail(w, http.StatusNotFound, "NAME_UNKNOWN", "repository name not known to registry")
		return
	}
	query := req.URL.Query()
	tags := r.Tags(repo)
	if i, found := slices.BinarySearch(tags, query.Get("last")); found {
		tags = tags[i+1:]
	} else {
		tags = tags[i:]
	}
	n, err := strconv.Atoi(query.Get("n"))
	if err != nil {
		n = len(tags)
	}
	if most := r.conf.Quirks.TagsPage; most > 0 {
		n = min(n, most)
	}
	if n < len(tags) {
		tags = tags[:n]
		r.next(w, "/v2/"+repo+"/tags/list?"+url.Values{"n": {strconv.Itoa(n)}, "last": {tags[n-1]}}.Encode())
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"name": repo, "tags": append([]string{}, tags...)})
}

// next says where the next page is.
func (r *Registry) next(w http.ResponseWriter, target string) {
	if change := r.conf.Quirks.NextLink; change != nil {
		target = change(target)
	}
	w.Header().Set("Link", "<"+target+`>; rel="next"`)
}

// subjectOf returns the digest of the subject that a manifest names, "" for none.
func subjectOf(content []byte) digest.Digest {
	var m struct {
		Subject ocispec.Descriptor `json:"subject"`
	}
	_ = json.Unmarshal(content, &m)
	return m.Subject.Digest
}

// referrers returns the entries of a manifest's referrers, sorted by digest.
func (r *Registry) referrers(repo string, subject digest.Digest) []ocispec.Descriptor {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := []ocispec.Descriptor{}
	for dgst, m := range r.manifests[repo] {
		var body ocispec.Manifest
		if json.Unmarshal(m.content, &body) != nil || body.Subject == nil || body.Subject.Digest != subject {
			continue
		}
		list = append(list, ocispec.Descriptor{
			MediaType: m.mediaType, Digest: dgst, Size: int64(len(m.content)),
			ArtifactType: cmp.Or(body.ArtifactType, body.Config.MediaType), Annotations: body.Annotations,
		})
	}
	slices.SortFunc(list, func(a, b ocispec.Descriptor) int { return cmp.Compare(a.Digest, b.Digest) })
	return list
}

func (r *Registry) serveReferrers(w http.ResponseWriter, req *http.Request, repo, subject string) {
	q := r.conf.Quirks
	if !q.Referrers && !q.ReferrersLost {
		fail(w, http.StatusNotFound, "NAME_UNKNOWN", "no such path")
		return
	}
	list := r.referrers(repo, digest.Digest(subject))
	query := req.URL.Query()
	if want := query.Get("artifactType"); want != "" && !q.NoReferrersFilter {
		w.Header().Set("OCI-Filters-Applied", "artifactType")
		list = slices.DeleteFunc(list, func(d ocispec.Descriptor) bool { return d.ArtifactType != want })
	}
	if q.ReferrersLost {
		list = list[:0]
	}
	if from, err := strconv.Atoi(query.Get("from")); err == nil {
		list = list[min(from, len(list)):]
	}
	if n := q.ReferrersPage; n > 0 && n < len(list) {
		list = list[:n]
		from, _ := strconv.Atoi(query.Get("from"))
		query.Set("from", strconv.Itoa(from+n))
		r.next(w, req.URL.Path+"?"+query.Encode())
	}
	w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
	_ = json.NewEncoder(w).Encode(map[string]any{"schemaVersion": 2, "mediaType": ocispec.MediaTypeImageIndex, "manifests": list})
}

func (r *Registry) deleteManifest(w http.ResponseWriter, repo, name string) {
	q := r.conf.Quirks
	isTag := !strings.Contains(name, ":")
	if status := cmp.Or(q.NoDelete, map[bool]int{true: q.NoTagDelete}[isTag]); status != 0 {
		fail(w, status, "UNSUPPORTED", "the operation is unsupported")
		return
	}
	dgst, _, ok := r.Manifest(repo, name)
	if !ok {
		fail(w, http.StatusNotFound, "MANIFEST_UNKNOWN", "manifest unknown")
		return
	}
	r.mu.Lock()
	if isTag {
		delete(r.tags[repo], name)
	} else {
		delete(r.manifests[repo], dgst)
		maps.DeleteFunc(r.tags[repo], func(_ string, to digest.Digest) bool { return to == dgst })
	}
	r.mu.Unlock()
	w.WriteHeader(http.StatusAccepted)
}
