package location

import (
	"net/url"
	"os"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/hubname"
	"github.com/carton-oci/carton-oci/internal/localfile"
	"github.com/carton-oci/carton-oci/internal/secret"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/registry"
	"github.com/opencontainers/go-digest"
)

// Parse says what s names. In this order:
//
//   - "oci://host/repository:tag" is a reference into a registry, as Helm, Flux
//     and KServe write it, and "https://…" is the address of a carton; no other
//     scheme is read;
//   - "oci:DIR:TAG", "oci:DIR@DIGEST" and "oci:DIR" are an image layout, and
//     "oci-archive:FILE:TAG" and so on a tar of one; no other transport of skopeo's
//     ("docker:", "docker-archive:", "dir:") is read;
//   - "FILE.oci.tar", "FILE.oci.tar:TAG" and "FILE.oci.tar@DIGEST" are such a tar;
//   - "hf:ORG/NAME@REV" and "hf:ORG/NAME" are a repository of a model hub, also with
//     two slashes behind the colon;
//   - what begins with ".", "/" or "~/", or ends in ".carton", is a path;
//   - what has "localhost", a "." or a ":" before its first "/" is a reference
//     into a registry: "host/repository:tag", "host/repository@sha256:…";
//   - what exists is a path.
//
// Anything else is an error wrapping [ErrLocation]. Only the last rule looks at
// the file system, so that a reference means the same in every folder. A
// leading "~/" is the user's home, also behind "oci:", where shells leave it.
// Errors show neither user info nor a query.
func Parse(s string) (Location, error) {
	if loc, ok, err := parseHub(s); ok {
		return loc, err
	}
	if loc, ok, err := parseScheme(s); ok {
		return loc, err
	}
	if rest, ok := strings.CutPrefix(s, "oci:"); ok {
		return parseLayout(s, Location{Kind: KindLayout, Path: rest}, "folder, want oci:DIR:TAG")
	}
	if rest, ok := strings.CutPrefix(s, archivePrefix); ok || isArchive(s) {
		return parseLayout(s, Location{Kind: KindArchive, Path: rest}, "file, want "+archivePrefix+"FILE:TAG")
	}
	if ok, err := parseTransport(s); ok {
		return Location{}, err
	}
	if scheme, _, _ := strings.Cut(s, ":"); len(s) > len(scheme) &&
		(strings.EqualFold(scheme, "https") || strings.EqualFold(scheme, "http")) {
		return Location{}, Errorf(s, "want https://host/path")
	}
	if s != "" && (strings.ContainsRune("./~", rune(s[0])) || strings.HasSuffix(s, Ext) && secret.Redact(s) == s) {
		return Location{Kind: KindPath, Path: localfile.ExpandHome(s)}, nil
	}
	if host, _, ok := strings.Cut(s, "/"); ok && (host == "localhost" || strings.ContainsAny(host, ".:")) {
		return parseRegistry(s)
	}
	if s != "" {
		if _, err := os.Stat(s); err == nil {
			return Location{Kind: KindPath, Path: s}, nil
		}
	}
	err := Errorf(s, "names no repository and no file or folder that exists")
	if name, revision, at := strings.Cut(s, "@"); strings.Contains(name, "/") && hubname.IsRepository(name) &&
		(!at || hubname.CheckRevision(revision) == nil) {
		err = hint.With(err, "for a repository of the Hugging Face hub write %s", HubPrefix+s)
	}
	path := cleaned(secret.Redact(s))
	inRegistry := "host/" + path
	if strings.ContainsAny(path, ".:") && !strings.Contains(path, "/") { // most likely a host
		inRegistry = path + "/repository:tag"
	}
	return Location{}, hint.With(err, "write ./%s for a path, %s for a registry, oci:DIR:TAG for an image layout, "+
		"oci-archive:FILE:TAG for a tar of one", path, inRegistry)
}

// ParseDestination says where a push goes, and all tags that it moves: an artifact's
// location, followed by more tags behind commas ("host/repository:1,1.2,latest").
// The first tag, or the digest, is the location's; there must be one.
func ParseDestination(s string) (loc Location, tags []string, err error) {
	loc, tags, err = ParseCopyDestination(s)
	if err == nil && loc.Reference() == "" {
		return Location{}, nil, Errorf(s, "got no tag, want %s:TAG", secret.Redact(s))
	}
	return loc, tags, err
}

// ParseCopyDestination is [ParseDestination] of a place that needs no tag, because
// that of the source is taken.
func ParseCopyDestination(s string) (loc Location, tags []string, err error) {
	for {
		i := strings.LastIndexByte(s, ',')
		if i < 0 || registry.CheckTag(s[i+1:]) != nil {
			break
		}
		tags = append([]string{s[i+1:]}, tags...)
		s = s[:i]
	}
	loc, err = Parse(s)
	switch {
	case err != nil:
		return Location{}, nil, err
	case !loc.IsArtifact():
		return Location{}, nil, loc.WantPlace()
	case loc.Tag == "" && len(tags) > 0:
		return Location{}, nil, Errorf(s, "got tags behind a digest, want %s:TAG", loc.Untagged())
	}
	if loc.Tag != "" {
		tags = append([]string{loc.Tag}, tags...)
	}
	return loc, tags, nil
}

// isArchive reports whether s names an archive by what its file name ends in.
func isArchive(s string) bool {
	path, _, _ := splitReference(s)
	return strings.HasSuffix(path, ArchiveExt) && secret.Redact(s) == s
}

// splitReference takes a tag and a digest, which are not judged, off a path.
func splitReference(s string) (path, tag, dgst string) {
	path = s
	if i := strings.LastIndexByte(path, '@'); i >= 0 && strings.HasPrefix(path[i+1:], "sha") {
		path, dgst = path[:i], path[i+1:]
	}
	if i := strings.LastIndexByte(path, ':'); i >= 0 && !strings.ContainsAny(path[i:], `/\`) {
		path, tag = path[:i], path[i:]
	}
	return path, tag, dgst
}

// parseLayout reads the Path of an image layout, or of an archive, with what says
// which artifact; missing is what to say where there is none.
func parseLayout(s string, loc Location, missing string) (Location, error) {
	path, tag, dgst := splitReference(loc.Path)
	if dgst != "" {
		if err := layout.CheckDigest(digest.Digest(dgst)); err != nil {
			return Location{}, Errorf(s, "%v", err)
		}
	}
	if tag != "" {
		if err := registry.CheckTag(tag[1:]); err != nil {
			return Location{}, Errorf(s, "%v", err)
		}
		loc.Tag = tag[1:]
	}
	loc.Path, loc.Digest = path, digest.Digest(dgst)
	if loc.Path == "" {
		return Location{}, Errorf(s, "got no %s", missing)
	}
	loc.Path = localfile.ExpandHome(loc.Path)
	return loc, nil
}

func parseURL(s string) (Location, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Opaque != "" {
		return Location{}, Errorf(s, "want https://host/path")
	}
	secret.AddQuery(u)
	if isHubAddress(u) && !isHubFile(u) {
		return Location{}, hintRepository(Errorf(s, "is an address of the hub, and no carton"), u)
	}
	return Location{Kind: KindURL, URL: s}, nil
}

func parseRegistry(s string) (Location, error) {
	if host, rest, _ := strings.Cut(s, "/"); IsHubHost(host) {
		return Location{}, errHubReference(s, rest)
	}
	ref, err := registry.ParseReference(s)
	if err != nil {
		return Location{}, errtext.WithKind(err, ErrLocation)
	}
	return Location{
		Kind: KindRegistry, Registry: ref.Registry, Repository: ref.Repository, Tag: ref.Tag, Digest: ref.Digest,
	}, nil
}
