package location

import (
	"net/url"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/hubname"
	"github.com/carton-oci/carton-oci/internal/secret"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// parseHub reads "hf:ORG/NAME@REV", also with the slashes that make it a URL. ok is
// false where it does not begin so.
func parseHub(s string) (loc Location, ok bool, err error) {
	if len(s) < len(HubPrefix) || !strings.EqualFold(s[:len(HubPrefix)], HubPrefix) {
		return Location{}, false, nil
	}
	rest := strings.TrimPrefix(s[len(HubPrefix):], "//")
	if port, _, slash := strings.Cut(rest, "/"); slash && strings.Trim(port, "0123456789") == "" && port != "" && !strings.HasPrefix(s[len(HubPrefix):], "//") {
		return Location{}, false, nil // a registry's host that is called so, with a port
	}
	name, revision, at := strings.Cut(strings.TrimPrefix(rest, "models/"), "@")
	loc = Location{Kind: KindHub, Repository: name, Revision: revision}
	if secret.Redact(s) != s || hubname.CheckRepository(name) != nil {
		err = whyNoHub(Errorf(s, "names no repository of a hub, want hf:ORG/NAME or hf:ORG/NAME@REV"), rest)
	} else if at && hubname.CheckRevision(revision) != nil {
		err = Errorf(s, "got no branch, tag or commit behind the @, want hf:ORG/NAME@REV")
	}
	if err != nil {
		return Location{}, true, err
	}
	return loc, true, nil
}

// whyNoHub adds what may have been meant.
func whyNoHub(err error, rest string) error {
	kind, _, _ := strings.Cut(rest, "/")
	switch {
	case kind == "datasets" || kind == "spaces":
		return hint.With(err, "only repositories of models are read")
	case strings.Count(rest, "/") > 1 && !strings.Contains(rest, ".."):
		return hint.With(err, "one file of a repository is chosen by patterns: %s '*' %s FILE", hint.PackExclude, hint.PackInclude)
	}
	return hint.With(err, "a revision follows an @, and is a branch, a tag or a commit")
}

// hubPage returns the name here of the repository that a page of huggingface.co is
// about, "" for any other address, and for a file's.
func hubPage(u *url.URL) string {
	host := strings.TrimPrefix(strings.ToLower(u.Host), "www.")
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	switch {
	case host != "huggingface.co" && host != "hf.co", len(parts) < 2, len(parts) > 2 && !slices.Contains([]string{"tree", "blob"}, parts[2]),
		hubname.CheckRepository(parts[0]+"/"+parts[1]) != nil, slices.Contains([]string{"datasets", "spaces", "docs", "api"}, parts[0]):
		return ""
	case len(parts) > 3 && hubname.CheckRevision(parts[3]) == nil:
		return HubPrefix + parts[0] + "/" + parts[1] + "@" + parts[3]
	}
	return HubPrefix + parts[0] + "/" + parts[1]
}
