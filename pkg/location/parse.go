package location

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
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
//   - "oci:DIR:TAG", "oci:DIR@DIGEST" and "oci:DIR" are an image layout; no other
//     transport of skopeo's ("docker:", "oci-archive:", "dir:") is read;
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
		return parseLayout(s, rest)
	}
	if ok, err := parseTransport(s); ok {
		return Location{}, err
	}
	if scheme, _, _ := strings.Cut(s, ":"); len(s) > len(scheme) && (strings.EqualFold(scheme, "https") || strings.EqualFold(scheme, "http")) {
		return Location{}, Errorf(s, "want https://host/path")
	}
	if s != "" && (strings.ContainsRune("./~", rune(s[0])) || strings.HasSuffix(s, Ext) && secret.Redact(s) == s) {
		return Location{Kind: KindPath, Path: expandHome(s)}, nil
	}
	if host, _, ok := strings.Cut(s, "/"); ok && (host == "localhost" || strings.ContainsAny(host, ".:")) {
		return parseRegistry(s)
	}
	if s != "" {
		if _, err := os.Stat(s); err == nil {
			return Location{Kind: KindPath, Path: s}, nil
		}
	}
	err := Errorf(s, "names no registry and no file or folder that exists")
	return Location{}, hint.With(err, "write ./%s for a path, host/%[1]s for a registry, oci:DIR:TAG for an image layout", cleaned(secret.Redact(s)))
}

// ParseDestination says where a push goes, and all tags that it moves: an artifact's
// location, followed by more tags behind commas ("host/repository:1,1.2,latest").
// The first tag, or the digest, is the location's; there must be one.
func ParseDestination(s string) (loc Location, tags []string, err error) {
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
		err := Errorf(loc.Redacted(), "got a carton, want a place in a registry or an image layout")
		return Location{}, nil, hint.With(err, "write host/repository:TAG, without https://, or oci:DIR:TAG")
	case loc.Reference() == "":
		return Location{}, nil, Errorf(s, "got no tag, want %s:TAG", secret.Redact(s))
	case loc.Tag == "" && len(tags) > 0:
		return Location{}, nil, Errorf(s, "got tags behind a digest, want %s:TAG", loc.Untagged())
	}
	if loc.Tag != "" {
		tags = append([]string{loc.Tag}, tags...)
	}
	return loc, tags, nil
}

func parseLayout(s, rest string) (Location, error) {
	loc := Location{Kind: KindLayout, Path: rest}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 && strings.HasPrefix(rest[i+1:], "sha") {
		if err := layout.CheckDigest(digest.Digest(rest[i+1:])); err != nil {
			return Location{}, Errorf(s, "%v", err)
		}
		loc.Path, loc.Digest = rest[:i], digest.Digest(rest[i+1:])
	}
	if i := strings.LastIndexByte(loc.Path, ':'); i >= 0 && !strings.ContainsAny(loc.Path[i:], `/\`) {
		loc.Path, loc.Tag = loc.Path[:i], loc.Path[i+1:]
		if err := registry.CheckTag(loc.Tag); err != nil {
			return Location{}, Errorf(s, "%v", err)
		}
	}
	if loc.Path == "" {
		return Location{}, Errorf(s, "got no folder, want oci:DIR:TAG")
	}
	loc.Path = expandHome(loc.Path)
	return loc, nil
}

func parseURL(s string) (Location, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Opaque != "" {
		return Location{}, Errorf(s, "want https://host/path")
	}
	secret.AddQuery(u)
	return Location{Kind: KindURL, URL: s}, nil
}

func parseRegistry(s string) (Location, error) {
	ref, err := registry.ParseReference(s)
	if err != nil {
		return Location{}, errtext.WithKind(err, ErrLocation)
	}
	return Location{
		Kind: KindRegistry, Registry: ref.Registry, Repository: ref.Repository, Tag: ref.Tag, Digest: ref.Digest,
	}, nil
}

// expandHome replaces a leading "~/", which shells leave alone behind "oci:" and
// "=".
func expandHome(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return path
}
