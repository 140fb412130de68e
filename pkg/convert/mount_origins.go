package convert

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// originsOf returns what tells the repositories that hold a blob: the one that
// src itself is read from, and those that LINKS names, if they are among allowed:
// a mount reads with the credentials of who asks for it, and LINKS is a stranger's.
// A repository that has all that LINKS names is likely to have the rest of the
// artifact too, and asking costs nothing: a mount that fails is an upload that has
// begun.
func originsOf(src carton.Source, allowed []layout.Origin) func(digest.Digest) []layout.Origin {
	blobs := map[digest.Digest][]layout.Origin{}
	if s, ok := src.(*Source); ok {
		if o := s.opts.Origin; o != (layout.Origin{}) {
			for _, l := range s.manifest.Layers {
				blobs[l.Digest] = []layout.Origin{o}
			}
		}
	}
	if links := src.Links(); links != nil {
		for hash, urls := range links.URLs {
			dgst := digestOf(hash)
			blobs[dgst] = slices.Clip(blobs[dgst]) // known, if as one that nobody may mount
			for _, u := range urls {
				if o, ok := LinkOrigin(u, dgst); ok && slices.Contains(allowed, o) && !slices.Contains(blobs[dgst], o) {
					blobs[dgst] = append(blobs[dgst], o)
				}
			}
		}
	}
	likely := inAll(blobs)
	return func(d digest.Digest) []layout.Origin {
		if known, ok := blobs[d]; ok {
			return known
		}
		return likely
	}
}

// Docker Hub is the one registry whose API is not at the host that it goes by.
const (
	hubName = "docker.io"
	hubAPI  = "registry-1.docker.io"
)

// inAll returns the repositories that hold every blob of a list.
func inAll(blobs map[digest.Digest][]layout.Origin) []layout.Origin {
	var all []layout.Origin
	first := true
	for _, d := range slices.Sorted(maps.Keys(blobs)) {
		origins := blobs[d]
		if first {
			all, first = slices.Clone(origins), false
			continue
		}
		all = slices.DeleteFunc(all, func(o layout.Origin) bool { return !slices.Contains(origins, o) })
	}
	return all
}

// LinkOrigin reads https://HOST/v2/REPOSITORY/blobs/DIGEST, the address of a
// blob in a registry, and returns the repository as a reference names it: end-2 of
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#endpoints
func LinkOrigin(link string, dgst digest.Digest) (layout.Origin, bool) {
	u, err := url.Parse(link)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.User != nil || u.Host == "" || u.RawQuery != "" {
		return layout.Origin{}, false
	}
	repo, ok := strings.CutPrefix(u.Path, "/v2/")
	if !ok {
		return layout.Origin{}, false
	}
	repo, ok = strings.CutSuffix(repo, "/blobs/"+dgst.String())
	if !ok || repo == "" {
		return layout.Origin{}, false
	}
	if u.Host == hubAPI {
		u.Host = hubName
	}
	return layout.Origin{Registry: strings.ToLower(u.Host), Repository: repo}, true
}
