package carton

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"slices"
	"strings"
)

// HashFS reads every file of fsys and returns the MANIFEST that lists them,
// without a MANIFEST or LINKS that lies there already: what [NewManifest] makes
// of their hashes. Symlinks, which must be as [Source] wants them, are listed
// with the hash of their final target.
func HashFS(ctx context.Context, fsys fs.FS) (*Manifest, error) {
	found, err := walkFiles(ctx, fsys)
	if err != nil {
		return nil, err
	}
	delete(found, ManifestName)
	delete(found, LinksName)
	members := make([]Member, 0, len(found))
	for p, m := range found {
		m.Path = p
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.Path, b.Path) })
	if err := cleanTargets(members); err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(members))
	for i := range members {
		if members[i].Target != "" {
			continue
		}
		if members[i].Hash, err = hashFile(ctx, fsys, members[i].Path); err != nil {
			return nil, err
		}
	}
	for i := range members {
		m := &members[i]
		if m.Target != "" {
			end, err := followSymlinks(members, m.Path)
			if err != nil {
				return nil, err
			}
			m.Hash = end.Hash
		}
		entries = append(entries, Entry{Path: m.Path, Hash: m.Hash})
	}
	return NewManifest(entries)
}

// hashFile returns the lower-case hex sha256 of a file.
func hashFile(ctx context.Context, fsys fs.FS, name string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	f, err := fsys.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", of(name, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
