package location

import (
	"regexp"
	"strings"

	"github.com/carton-oci/carton-oci/internal/secret"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/registry"
)

// schemeRule is https://www.rfc-editor.org/rfc/rfc3986#section-3.1, but for a
// single letter, which is a drive of Windows.
var schemeRule = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]+)://`)

// transportRule is what skopeo and podman write before a place, but for "oci:" and
// "oci-archive:".
// Digits up to a slash behind it are the port of a host that is called so.
// https://github.com/containers/image/blob/v5.36.2/docs/containers-transports.5.md
var (
	transportRule = regexp.MustCompile(`^(containers-storage|dir|docker|docker-archive|docker-daemon|oci-layout|ostree|sif):`)
	portRule      = regexp.MustCompile(`^[0-9]+/`)
)

// parseScheme reads what begins with a scheme. ok is false where there is none.
func parseScheme(s string) (loc Location, ok bool, err error) {
	m := schemeRule.FindStringSubmatch(s)
	if m == nil {
		return Location{}, false, nil
	}
	scheme, rest := strings.ToLower(m[1]), s[len(m[0]):]
	switch scheme {
	case "oci":
		loc, err = parseOCI(s, rest)
	case "https":
		loc, err = parseURL(scheme + "://" + rest)
	case "http":
		err = hint.With(Errorf(s, "got http, want https"),
			"a registry without TLS is written host/repository:tag and reached with %s", hint.PlainHTTP)
	default:
		err = otherScheme(scheme+"://", s, rest)
	}
	return loc, true, err
}

// parseOCI reads "oci://host/repository:tag", as Helm, Flux and KServe write a
// reference.
func parseOCI(s, rest string) (Location, error) {
	host, _, _ := strings.Cut(rest, "/")
	switch {
	case host == "":
		err := Errorf(s, "got no host, want oci://host/repository:TAG")
		return Location{}, hint.With(err,
			"an image layout in a folder is written with one colon and no slashes of its own: oci:/DIR:TAG")
	case secret.Redact(s) != s:
		err := Errorf(s, "got a user name, a password or a query, want oci://host/repository:TAG")
		return Location{}, hint.With(err, "%s HOST keeps them", hint.Login)
	}
	return parseRegistry(rest)
}

// otherScheme is the error for a place that other programs can name.
func otherScheme(scheme, typed, rest string) error {
	err := Errorf(typed, "names a place with %s, which carton-oci does not read", scheme)
	switch strings.TrimSuffix(scheme, "//") {
	case "docker:", "oras:", "registry:", "modelpack:":
		ref, bad := registry.ParseReference(rest)
		if bad != nil {
			return hint.With(err, "write host/repository:TAG for a registry, without %s", scheme)
		}
		return hint.With(err, "write %s", ref)
	case "file:":
		return hint.With(err, "write the path alone, without %s", scheme)
	case "huggingface:":
		return hint.With(err, "write hf:ORG/NAME or hf:ORG/NAME@REV for a repository of the hub")
	case "s3:", "gs:", "az:", "abfs:", "abfss:", "ftp:", "sftp:":
		return hint.With(err,
			"download it first; a carton that a web server serves can be named by its https:// address")
	case "oci-layout:":
		return hint.With(err, "write oci:DIR:TAG for an image layout")
	case "containers-storage:", "dir:", "docker-archive:", "docker-daemon:", "ostree:", "sif:":
		return hint.With(err, "carton-oci reads image layouts and tars of them: skopeo copy to oci:DIR:TAG or "+
			"oci-archive:FILE:TAG, and name that")
	}
	return hint.With(err, "write host/repository:TAG for a registry, oci:DIR:TAG for an image layout, https://… "+
		"for a carton on a web server, or a path")
}

// parseTransport refuses what begins with a transport of skopeo's. ok is false
// where nothing does.
func parseTransport(s string) (ok bool, err error) {
	m := transportRule.FindString(s)
	if m == "" || portRule.MatchString(s[len(m):]) {
		return false, nil
	}
	return true, otherScheme(m, s, s[len(m):])
}
