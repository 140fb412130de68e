// Package location says what a word names: a file or folder on this machine, an
// image layout, an archive of one, a registry's reference, an https address, a hub's
// repository. [Parse] has the rules.
package location

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/secret"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/opencontainers/go-digest"
)

// ErrLocation is wrapped by errors about text that names no place, or a place
// that can't be used so.
var ErrLocation = errors.New("not a location")

// Errorf returns an error that wraps [ErrLocation], about what somebody typed. It
// names that without what may be secret.
func Errorf(s, format string, args ...any) error {
	err := fmt.Errorf("%q: %s", secret.Redact(s), fmt.Sprintf(format, args...))
	return errtext.WithKind(hint.Add(err, hint.OfArgs(args)...), ErrLocation)
}

// HubPrefix is what the name of a hub's repository begins with: "hf:org/name@main".
const HubPrefix = "hf:"

// Ext is what a carton's file name ends in.
const Ext = ".carton"

// ArchiveExt is what the file name of an archive ends in that is named without
// "oci-archive:".
const ArchiveExt = ".oci.tar"

// archivePrefix is what any other archive is named with.
const archivePrefix = "oci-archive:"

// Kind says what sort of place a [Location] is.
type Kind int

// The sorts of places.
const (
	// KindPath: a carton on this machine, a zip or a folder.
	KindPath Kind = iota
	// KindLayout: an artifact in an image-layout folder.
	KindLayout
	// KindRegistry: an artifact in a registry.
	KindRegistry
	// KindURL: a carton that a web server serves.
	KindURL
	// KindHub: a repository of a model hub, which is no carton: one is made of its
	// files (package hub).
	KindHub
	// KindArchive: an artifact in a tar of an image layout.
	KindArchive
)

// Location is a place that holds a carton, or is to hold one.
type Location struct {
	// Kind says which of the other fields count.
	Kind Kind
	// Path is the carton of KindPath, the folder of KindLayout, or the file of
	// KindArchive, as the operating system writes it.
	Path string
	// URL is the address of KindURL.
	URL string
	// Registry and Repository are those of KindRegistry; KindHub has a Repository,
	// too, as in "org/name".
	Registry, Repository string
	// Revision is the branch, tag or commit of KindHub, "" where none is named.
	Revision string
	// Tag and Digest say which artifact, for KindLayout, KindArchive and KindRegistry.
	// Either may be empty. Where both are given the digest decides what is read.
	Tag    string
	Digest digest.Digest
}

// String writes the location so that Parse reads it again.
func (l Location) String() string {
	var s string
	switch l.Kind {
	case KindURL:
		return l.URL
	case KindLayout:
		s = "oci:" + l.Path
		if strings.HasPrefix(l.Path, "//") {
			s = "oci:" + filepath.Clean(l.Path)
		}
	case KindHub:
		s = HubPrefix + l.Repository
		if l.Revision != "" {
			s += "@" + l.Revision
		}
		return s
	case KindArchive:
		s = l.Path
		if !strings.HasSuffix(s, ArchiveExt) || strings.ContainsAny(s, ":@?") {
			s = archivePrefix + s
		}
	case KindRegistry:
		s = l.Registry + "/" + l.Repository
	default:
		return l.Path
	}
	if l.Tag != "" {
		s += ":" + l.Tag
	}
	if l.Digest != "" {
		s += "@" + l.Digest.String()
	}
	if l.Kind == KindRegistry && (strings.HasSuffix(s, Ext) || isArchive(s)) {
		return "oci://" + s // else it would be a path
	}
	return s
}

// Redacted is String without what may be secret: user name, password and query
// of a URL. Errors and logs show this.
func (l Location) Redacted() string {
	if l.Kind == KindURL {
		return secret.Redact(l.URL)
	}
	return l.String()
}

// IsArtifact reports whether the location is an artifact in a registry, an image
// layout or an archive, and not a carton by itself.
func (l Location) IsArtifact() bool {
	return l.Kind == KindLayout || l.Kind == KindArchive || l.Kind == KindRegistry
}

// IsLocal reports whether the location is a file or folder on this machine.
func (l Location) IsLocal() bool {
	return l.Kind == KindPath || l.Kind == KindLayout || l.Kind == KindArchive
}

// Reference is what a store is asked for: the digest where there is one, else
// the tag. "" where the location names neither.
func (l Location) Reference() string {
	if l.Digest != "" {
		return l.Digest.String()
	}
	return l.Tag
}

// Untagged returns the place without saying which artifact.
func (l Location) Untagged() Location {
	l.Tag, l.Digest = "", ""
	return l
}

func cleaned(s string) string {
	if s == "" {
		return "NAME"
	}
	return s
}
