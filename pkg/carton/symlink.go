package carton

import (
	"path"
	"strings"
)

// unreadTarget marks a symlink whose target has not been read yet. It is no
// possible target: they hold no NUL.
const unreadTarget = "\x00"

// modelFolder is where symlinks may be and point to.
const modelFolder = "model/"

// ResolveSymlinks checks the symlinks among sorted members, whose Targets are as
// the zip, folder or tar has them, and gives each a cleaned Target and its final
// target's Size, Place and Ranged.
//
// A symlink lies inside model/, is relative, and ends after at most
// [MaxSymlinks] steps at a regular member inside model/ that has the hash that
// MANIFEST lists for the symlink. No folder on the way is a symlink, as none
// ends at a folder.
func ResolveSymlinks(members []Member) error {
	if err := cleanTargets(members); err != nil {
		return err
	}
	for i := range members {
		m := &members[i]
		if m.Target == "" {
			continue
		}
		end, err := followSymlinks(members, m.Path)
		if err != nil {
			return err
		}
		if end.Hash != m.Hash {
			return errorf(ErrChecksum, m.Path, "MANIFEST lists it with another hash than %s, which it points to",
				quotePath(end.Path))
		}
		m.Size, m.Place, m.Ranged = end.Size, end.Place, end.Ranged
	}
	return nil
}

// cleanTargets gives every symlink the shortest relative path to where it
// points, which must be inside model/.
func cleanTargets(members []Member) error {
	bytes := 0
	for i := range members {
		m := &members[i]
		if m.Target == "" {
			continue
		}
		if bytes += len(m.Target); bytes > MaxNamesBytes {
			return errTargets()
		}
		if !strings.HasPrefix(m.Path, modelFolder) {
			return errorf(ErrInsecurePath, m.Path, "is a symlink outside of model/")
		}
		to, err := symlinkTarget(m.Path, m.Target)
		if err != nil {
			return err
		}
		m.Target = relativeTo(path.Dir(m.Path), to)
	}
	return nil
}

// errTargets is the error for symlinks that keep more than their share of memory.
func errTargets() error {
	return errorf(ErrLimit, "", "the targets of symlinks have more than %d bytes together", MaxNamesBytes)
}

// symlinkTarget returns the path that a symlink at link points to.
func symlinkTarget(link, target string) (string, error) {
	to := path.Join(path.Dir(link), target)
	switch {
	case path.IsAbs(target):
		return "", errorf(ErrInsecurePath, link, "symlink's target %s is absolute", quotePath(target))
	case CheckPath(to) != nil, !strings.HasPrefix(to, modelFolder):
		return "", errorf(ErrInsecurePath, link, "symlink's target %s is not inside model/", quotePath(target))
	}
	return to, nil
}

// followSymlinks returns the regular member where path, one of the sorted
// members, ends.
func followSymlinks(members []Member, p string) (Member, error) {
	at := p
	for range MaxSymlinks + 1 {
		m, ok := findMember(members, at)
		switch {
		case !ok && hasFolder(members, at):
			return m, errorf(ErrFormat, p, "is a symlink to the folder %s, and may only end at a file", quotePath(at))
		case !ok:
			return m, errorf(ErrFormat, p, "is a symlink to %s, which is not in the carton", quotePath(at))
		case m.Target == "":
			return m, nil
		}
		at = path.Join(path.Dir(at), m.Target)
	}
	return Member{}, errorf(ErrInsecurePath, p, "symlink does not end after %d steps", MaxSymlinks)
}

// relativeTo returns the shortest relative path from the folder dir to the
// file to.
func relativeTo(dir, to string) string {
	from, rest := strings.Split(dir, "/"), strings.Split(to, "/")
	for len(from) > 0 && len(rest) > 1 && from[0] == rest[0] {
		from, rest = from[1:], rest[1:]
	}
	return strings.Repeat("../", len(from)) + strings.Join(rest, "/")
}
