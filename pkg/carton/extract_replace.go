package carton

import (
	"context"
	"io/fs"
	"path"

	"github.com/carton-oci/carton-oci/internal/place"
)

// CheckReplace returns nil where Extract of the same source and options, with
// Replace, may replace the folder dir; else an error that names the first few
// files there that are none of a pull's. Where there is no such folder it is nil.
func CheckReplace(ctx context.Context, dir string, src Source, opts ExtractOptions) error {
	chosen, err := chooseOf(ctx, src, opts)
	if err != nil {
		return err
	}
	return place.CheckReplace(dir, chosen.replaceable())
}

// replaceable says what may be removed of a folder that is to be replaced: what
// the MANIFEST there lists, MANIFEST and LINKS. A choice of members has no
// MANIFEST; it may take the place of what has the names that it writes.
func (c choice) replaceable() place.Known {
	return func(old fs.FS) func(p string, folder bool) bool {
		names := map[string]bool{} // of files, true; of folders, false
		add := func(p string) {
			names[p] = true
			for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
				if _, ok := names[dir]; ok {
					break
				}
				names[dir] = false
			}
		}
		if !c.whole {
			for _, m := range c.members {
				add(m.Path[len(c.prefix):])
			}
		}
		if raw, err := readOwnFile(old, ManifestName, MaxManifestBytes); err == nil {
			if m, err := ParseManifest(raw); err == nil {
				add(ManifestName)
				add(LinksName)
				for _, e := range m.Entries() {
					add(e.Path)
				}
			}
		}
		return func(p string, folder bool) bool {
			file, ok := names[p]
			return ok && file != folder
		}
	}
}
