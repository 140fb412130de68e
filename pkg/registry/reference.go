package registry

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"
	"oras.land/oras-go/v2/errdef"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/secret"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// ErrReference is wrapped by the errors about strings that are no reference to
// a registry. It is oras-go's, so that code around either library tests for one
// error.
var ErrReference = errdef.ErrInvalidReference

// maxNameBytes is the longest host and repository together, with the slash
// between: what most clients accept.
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#pulling-manifests
const maxNameBytes = 255

// Docker Hub is the one registry whose API is not where its name says, and
// where a repository of one component lies in a folder that nobody writes.
const (
	hubName    = "docker.io"
	hubAlias   = "index.docker.io"
	hubAPI     = "registry-1.docker.io"
	hubFolder  = "library/"
	hubAccount = "https://index.docker.io/v1/" // the key of its credentials
)

// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#pulling-manifests
var (
	repositoryRE = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	tagRE        = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]*$`)
	hostRE       = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)
)

// Reference names what a registry keeps. Registry and Repository are always
// set. Tag and Digest may both be: then the digest says which content, and the
// tag only what it was called.
type Reference struct {
	// Registry is the host, in lower case, with the port where there is one. It
	// is "docker.io" for every name of Docker Hub.
	Registry string
	// Repository is the name within the registry, "library/…" for a single name
	// of Docker Hub.
	Repository string
	// Tag is the tag, "" where there is none.
	Tag string
	// Digest pins the content, "" where nothing does.
	Digest digest.Digest
}

// ParseReference reads "host/repository", followed by ":tag", "@sha256:…" or
// both. There is no default registry: the host is "localhost", holds a dot or
// a colon, or is an IPv6 address in brackets. An error wraps [ErrReference].
func ParseReference(s string) (Reference, error) {
	shown := secret.Redact(s)
	if scheme, rest, ok := strings.Cut(shown, "://"); ok {
		return Reference{}, hint.With(badReference(s, "begins with %q", scheme+"://"), "write %s", rest)
	}
	if shown != s {
		return Reference{}, hint.With(badReference(s, "has more than HOST/REPOSITORY:TAG@DIGEST"),
			"user names and passwords are kept by %s HOST", hint.Login)
	}
	host, rest, ok := strings.Cut(s, "/")
	if !ok || !namesHost(host) {
		return Reference{}, hint.With(badReference(s, "names no registry"),
			"write HOST/REPOSITORY:TAG, for example docker.io/org/model:1")
	}
	ref := Reference{Registry: userHost(host)}
	rest, dgst, pinned := strings.Cut(rest, "@")
	name, tag, tagged := strings.Cut(rest, ":")
	ref.Repository, ref.Tag = name, tag
	if ref.Registry == hubName && !strings.Contains(name, "/") {
		ref.Repository = hubFolder + name
	}
	if err := CheckName(ref.Registry, ref.Repository); err != nil {
		return Reference{}, err
	}
	if tagged {
		if err := CheckTag(tag); err != nil {
			return Reference{}, badReference(s, "%v", err)
		}
	}
	if pinned {
		if err := layout.CheckDigest(digest.Digest(dgst)); err != nil {
			return Reference{}, badReference(s, "%v", err)
		}
		ref.Digest = digest.Digest(dgst)
	}
	return ref, nil
}

// CheckName judges the names of a registry and of a repository in it. An error
// wraps [ErrReference].
func CheckName(registry, repository string) error {
	if err := checkHost(registry); err != nil {
		return badReference(registry, "%v", err)
	}
	if !repositoryRE.MatchString(repository) {
		err := badReference(repository, "want a repository of lower-case letters and digits, with single ._-/ between")
		if lower := strings.ToLower(repository); repositoryRE.MatchString(lower) {
			err = hint.With(err, "registries know lower case only: write %s/%s", registry, lower)
		}
		return err
	}
	if n := len(registry) + 1 + len(repository); n > maxNameBytes {
		return badReference(registry+"/…", "got a name of %d bytes, want at most %d", n, maxNameBytes)
	}
	return nil
}

// CheckTag returns what is wrong with a tag.
func CheckTag(tag string) error {
	if isTag(tag) {
		return nil
	}
	err := fmt.Errorf("got the tag %s, want at most 128 letters, digits and ._-, of which no . or - first",
		errtext.Quoted(tag))
	if other := asTag.Replace(tag); isTag(other) {
		err = hint.With(err, "versions with + and names with / are written otherwise in tags: %s", other)
	}
	return err
}

func isTag(s string) bool { return len(s) <= 128 && tagRE.MatchString(s) }

// asTag writes versions and names of branches as tags: the one as Helm does, the
// other as most do.
var asTag = strings.NewReplacer("+", "_", "/", "-")

// Name returns "host/repository".
func (r Reference) Name() string { return r.Registry + "/" + r.Repository }

// String returns the reference as [ParseReference] reads it.
func (r Reference) String() string {
	s := r.Name()
	if r.Tag != "" {
		s += ":" + r.Tag
	}
	if r.Digest != "" {
		s += "@" + r.Digest.String()
	}
	return s
}

// Target returns what to ask the repository for: the digest where there is
// one, else the tag, else "".
func (r Reference) Target() string {
	if r.Digest != "" {
		return r.Digest.String()
	}
	return r.Tag
}

// badReference names what somebody typed without what may be secret.
func badReference(s, format string, args ...any) error {
	err := fmt.Errorf("%w %q: %s", ErrReference, secret.Redact(s), fmt.Sprintf(format, args...))
	return hint.Add(err, hint.OfArgs(args)...)
}

// namesHost reports whether the part of a reference before its first slash is
// meant as a host.
func namesHost(s string) bool {
	return strings.EqualFold(s, "localhost") || strings.ContainsAny(s, ".:")
}

// checkHost accepts a DNS name, an IPv4 address or a bracketed IPv6 address,
// with a port or without. An address and a port are written in one way: what is known
// of a registry (a policy, credentials) is found by its name.
func checkHost(host string) error {
	name := host
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		name = host[:i]
		port, err := strconv.ParseUint(host[i+1:], 10, 16)
		if err != nil || port == 0 {
			return errors.New("want a port between 1 and 65535")
		}
		if strconv.FormatUint(port, 10) != host[i+1:] { // another name of the same registry
			return fmt.Errorf("want the port %d without zeros before it", port)
		}
	}
	if literal, ok := strings.CutPrefix(name, "["); ok {
		literal, ok = strings.CutSuffix(literal, "]")
		addr, err := netip.ParseAddr(literal)
		if !ok || err != nil || !addr.Is6() || addr.Zone() != "" {
			return errors.New("want an IPv6 address in brackets")
		}
		if addr.String() != strings.ToLower(literal) {
			return fmt.Errorf("want the address as it is written for short, [%s]", addr)
		}
		return nil
	}
	if !hostRE.MatchString(strings.ToLower(name)) {
		return errors.New("want a host name or address")
	}
	return nil
}

// apiHost returns the host that serves a registry's API.
func apiHost(registry string) string {
	if registry == hubName || registry == hubAlias {
		return hubAPI
	}
	return registry
}

// userHost is the other way round: what people call the registry that an API's
// host belongs to, as a [Reference] has it. Credentials are kept by this name.
func userHost(host string) string {
	host = strings.ToLower(host)
	switch host {
	case hubAPI, hubAlias:
		return hubName
	}
	return host
}
