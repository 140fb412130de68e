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
// src itself is read from, and those that LINKS names. A repository that has all
// that LINKS names is likely to have the rest of the artifact too, and asking
// costs nothing: a mount that fails is an upload that has begun.
func originsOf(src carton.Source) func(digest.Digest) []layout.Origin {
	blobs := map[digest.Digest][]layout.Origin{}
	if s, ok := src.(*Source); ok {
		if o := s.Origin(); o != (layout.Origin{}) {
			for _, l := range s.manifest.Layers {
				blobs[l.Digest] = []layout.Origin{o}
			}
		}
	}
	if links := src.Links(); links != nil {
		for hash, urls := range links.URLs {
			dgst := digest.NewDigestFromEncoded(digest.SHA256, hash)
			for _, u := range urls {
				if o, ok := linkOrigin(u, dgst); ok && !slices.Contains(blobs[dgst], o) {
					blobs[dgst] = append(blobs[dgst], o)
				}
			}
		}
	}
	likely := inAll(blobs)
	return func(d digest.Digest) []layout.Origin {
		if known := blobs[d]; known != nil {
			return known
		}
		return likely
	}
}

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

// linkOrigin reads https://HOST/v2/REPOSITORY/blobs/DIGEST, the address of a
// blob in a registry: end-2 of
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#endpoints
func linkOrigin(link string, dgst digest.Digest) (layout.Origin, bool) {
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
	return layout.Origin{Registry: u.Host, Repository: repo}, true
}
