package pack

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/secret"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// Link says where a member can be fetched.
type Link struct {
	// Path is the member's, below model/. "" makes URL the address of the folder
	// model/: every file in it is at URL/PATH, the path being that below model/.
	Path string
	// URL is https, without user name and password, and stays as it is: signatures
	// that expire are refused.
	URL string
}

// ParseLink reads "PATH=URL", or the URL of all of model/.
func ParseLink(text string) (Link, error) {
	if strings.HasPrefix(text, "https:") || strings.HasPrefix(text, "http:") {
		return Link{URL: text}, checkURL(text)
	}
	name, address, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return Link{}, optionsf("got %s, want a URL or PATH=URL", errtext.Quote(secret.Redact(text)))
	}
	return Link{Path: name, URL: address}, checkURL(address)
}

// checkURL wants an address that every loader can fetch, now and later.
func checkURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "https" || u.Host == "":
		return optionsf("got the URL %s, want https://host/path", errtext.Quote(secret.Redact(address)))
	case u.Fragment != "":
		return optionsf("got the URL %s with a fragment, want none", errtext.Quote(secret.Redact(address)))
	}
	if what := secret.Of(u); what != "" {
		err := optionsf("the URL of %s has %s: LINKS is for everybody, and for longer", errtext.Quote(u.Host), what)
		return hint.With(err, "give an address that needs no signature")
	}
	return nil
}

// addressBelow is the address of a file below that of its folder. Names are not
// escaped, and addresses are: "100%.bin" is asked for as "100%25.bin".
func addressBelow(folder, name string) string {
	u, _ := url.Parse(folder) // checked
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return u.JoinPath(parts...).String()
}

// links says what a thin carton of the files leaves out, nil where nothing was
// asked for. Nothing is fetched: the files are at hand, and give the hashes.
func (p *packer) links(members []carton.Member) (*carton.Links, error) {
	if len(p.opts.Links) == 0 {
		return nil, nil
	}
	l := &carton.Links{URLs: map[string][]string{}}
	for _, link := range p.opts.Links {
		if err := checkURL(link.URL); err != nil {
			return nil, err
		}
		found := false
		for _, m := range members {
			address := ""
			rest, inModel := strings.CutPrefix(m.Path, modelFolder)
			switch {
			case !inModel || m.Target != "":
			case link.Path == "":
				address = addressBelow(link.URL, rest)
			case path.Clean(link.Path) == m.Path:
				address = link.URL
			}
			if address == "" || slices.Contains(l.URLs[m.Hash], address) {
				found = found || address != ""
				continue
			}
			found = true
			if len(l.URLs[m.Hash]) == carton.MaxLinkURLs {
				continue // many members of one content: each URL serves them all
			}
			l.URLs[m.Hash] = append(l.URLs[m.Hash], address)
		}
		if !found && link.Path != "" {
			return nil, optionsf("there is no file %s to link: links are of files below %s",
				errtext.Quote(link.Path), modelFolder)
		}
	}
	return l, nil
}
