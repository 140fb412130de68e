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
	if port, _, slash := strings.Cut(rest, "/"); slash && strings.Trim(port, "0123456789") == "" && port != "" &&
		!strings.HasPrefix(s[len(HubPrefix):], "//") {
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
	u, urlErr := url.Parse(rest)
	switch {
	case kind == "datasets" || kind == "spaces":
		return hint.With(err, "only repositories of models are read")
	case urlErr == nil && isHubAddress(u):
		return hintRepository(err, u)
	case strings.Count(rest, "/") > 1 && !strings.Contains(rest, ".."):
		return hint.With(err, "one file of a repository is chosen by patterns: %s '*' %s FILE", hint.PackExclude,
			hint.PackInclude)
	}
	return hint.With(err, "a revision follows an @, and is a branch, a tag or a commit")
}

// IsHubHost reports whether a host is the Hugging Face hub's, which is no registry.
func IsHubHost(host string) bool {
	switch strings.TrimPrefix(strings.ToLower(host), "www.") {
	case "huggingface.co", "hf.co":
		return true
	}
	return false
}

// isHubAddress reports whether an address is about a repository of models on
// huggingface.co.
func isHubAddress(u *url.URL) bool { return IsHubHost(u.Host) && pageOf(u.Path).repository != "" }

// page is what an address of the hub shows: ORG/NAME, and after that a verb, a
// revision and a file.
type page struct{ repository, verb, revision, file string }

// pageOf reads the path of an address, as far as it is one of a repository's.
func pageOf(path string) page {
	parts := strings.SplitN(strings.Trim(path, "/"), "/", 5)
	if len(parts) < 2 || slices.Contains([]string{"datasets", "spaces", "docs", "api"}, parts[0]) {
		return page{}
	}
	p := page{repository: parts[0] + "/" + parts[1]}
	if hubname.CheckRepository(p.repository) != nil {
		return page{}
	}
	if len(parts) > 3 && slices.Contains([]string{"tree", "blob", "resolve", "raw"}, parts[2]) &&
		hubname.CheckRevision(parts[3]) == nil {
		p.verb, p.revision = parts[2], parts[3]
	}
	if p.verb != "" && p.verb != "tree" && len(parts) == 5 {
		p.file = parts[4]
	}
	return p
}

// isHubFile reports whether an address is that of a carton which the hub keeps, and
// sends.
func isHubFile(u *url.URL) bool {
	p := pageOf(u.Path)
	return p.verb == "resolve" && strings.HasSuffix(p.file, Ext)
}

// hintRepository adds to an error how the repository is named that an address is
// about, or the carton in it.
func hintRepository(err error, u *url.URL) error {
	p := pageOf(u.Path)
	name := HubPrefix + p.repository
	if p.revision != "" {
		name += "@" + p.revision
	}
	switch {
	case strings.HasSuffix(p.file, Ext):
		return hint.With(err, "write %s for the carton",
			"https://huggingface.co/"+p.repository+"/resolve/"+p.revision+"/"+p.file)
	case p.file != "":
		return hint.With(err, "write %s for the repository; %s '*' %s %s takes this file alone", name, hint.PackExclude,
			hint.PackInclude, p.file)
	}
	return hint.With(err, "write %s for the repository", name)
}

// errHubReference is for the name of a repository as programs write it that take the
// hub for a registry: hf.co/org/name:Q4_K_M.
func errHubReference(s, rest string) error {
	err := Errorf(s, "the hub is no registry")
	repository, tag, _ := strings.Cut(rest, ":")
	switch {
	case hubname.CheckRepository(repository) != nil || !strings.Contains(repository, "/"):
		return hint.With(err, "a repository of the hub is written hf:ORG/NAME")
	case tag == "" || tag == "latest":
		return hint.With(err, "write %s for the repository", HubPrefix+repository)
	}
	return hint.With(err, "write %s for the repository; %s '*' %s %s takes the files with that in their names",
		HubPrefix+repository, hint.PackExclude, hint.PackInclude, "*"+tag+"*")
}

// what calls a location that is no artifact by what it is.
func (l Location) what() string {
	if l.Kind == KindHub {
		return "a hub's repository"
	}
	return "a carton"
}
