package carton

import (
	"io/fs"
	"slices"
	"sort"
	"strings"

	"github.com/carton-oci/carton-oci/pkg/hint"
)

// held is what a zip or folder holds: its files by path, MANIFEST and LINKS
// among them.
type held struct {
	what string // "zip" or "folder"
	len  int
	get  func(path string) (Member, bool)
	all  func(yield func(path string) bool)
}

// readLists reads the MANIFEST and LINKS of what is a zip or a folder. own reads one
// of them, and gives nil where it is not there.
func readLists(what string, own func(name string, limit int64) ([]byte, error)) (*Manifest, *Links, error) {
	raw, err := own(ManifestName, MaxManifestBytes)
	if err != nil {
		return nil, nil, err
	}
	if raw == nil {
		return nil, nil, errorf(ErrFormat, ManifestName, "is missing: the %s is no carton", what)
	}
	manifest, err := ParseManifest(raw)
	if err != nil {
		return nil, nil, err
	}
	if raw, err = own(LinksName, MaxLinksBytes); err != nil || raw == nil {
		return manifest, nil, err
	}
	links, err := ParseLinks(raw)
	return manifest, links, err
}

// matchMembers gives the members that MANIFEST lists, in bytewise order. Each
// file that is held must be listed. What is not held must be in LINKS.
func matchMembers(m *Manifest, links *Links, files held) ([]Member, error) {
	members := make([]Member, 0, len(m.Entries()))
	listed := 0
	for _, e := range m.Entries() {
		member, ok := files.get(e.Path)
		switch {
		case ok:
			listed++
		case links != nil && len(links.URLs[e.Hash]) > 0:
			member = Member{Size: -1, Place: PlaceLinked}
		default:
			err := errorf(ErrFormat, e.Path, "is listed in MANIFEST, but neither in the %s nor in LINKS", files.what)
			return nil, adviseBundles(err, files)
		}
		member.Path, member.Hash = e.Path, e.Hash
		members = append(members, member)
	}
	for _, own := range []string{ManifestName, LinksName} {
		if _, ok := files.get(own); ok {
			listed++
		}
	}
	if listed != files.len {
		return nil, errUnlisted(m, files)
	}
	slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.Path, b.Path) })
	return members, nil
}

// bundlesFolder is where a tool that unpacks nothing puts an artifact's tar layers:
// oras pull. docs/mapping.md has the name.
const bundlesFolder = ".bundles/"

// adviseBundles adds to the error for a member that is not there that it may lie in
// a tar beside MANIFEST.
func adviseBundles(err error, files held) error {
	for p := range files.all {
		if strings.HasPrefix(p, bundlesFolder) && strings.HasSuffix(p, ".tar") {
			return hint.With(err, "files are packed in %s, as oras pull leaves them; in the folder: for t in "+
				".bundles/*.tar; do tar -xf \"$t\"; done; rm -r .bundles", p)
		}
	}
	return err
}

// errUnlisted names the first of the files that MANIFEST does not list.
func errUnlisted(m *Manifest, files held) error {
	var extra []string
	for p := range files.all {
		if _, ok := m.Lookup(p); !ok && p != ManifestName && p != LinksName {
			extra = append(extra, p)
		}
	}
	first := slices.Min(extra)
	if len(extra) > 1 {
		return errorf(ErrFormat, first, "and %d more in the %s are not listed in MANIFEST", len(extra)-1, files.what)
	}
	return errorf(ErrFormat, first, "is in the %s, but is not listed in MANIFEST", files.what)
}

// findMember looks a path up in sorted members.
func findMember(members []Member, path string) (Member, bool) {
	i, ok := slices.BinarySearchFunc(members, path, func(m Member, p string) int {
		return strings.Compare(m.Path, p)
	})
	if !ok {
		return Member{}, false
	}
	return members[i], true
}

// hasFolder reports whether a path of the sorted members lies below path.
func hasFolder(members []Member, path string) bool {
	below := path + "/"
	i := sort.Search(len(members), func(i int) bool { return members[i].Path >= below })
	return i < len(members) && strings.HasPrefix(members[i].Path, below)
}

func errNoMember(path string) error {
	return errorf(fs.ErrNotExist, path, "is not in the carton")
}

// errLinked is the error for opening a member that only LINKS knows.
func errLinked(path string) error {
	return errorf(ErrLink, path, "is linked, and this source follows no links")
}
