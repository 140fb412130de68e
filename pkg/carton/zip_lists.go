package carton

import (
	"bytes"
	"context"
	"slices"

	"github.com/carton-oci/carton-oci/internal/zipdir"
)

// readLists reads MANIFEST and LINKS and matches them with the zip.
func (z *Reader) readLists() (err error) {
	if z.manifest, z.links, err = readLists("zip", z.readOwn); err != nil {
		return err
	}
	z.members, err = matchMembers(z.manifest, z.links, held{what: "zip", len: len(z.files), get: z.held, all: z.names})
	if err != nil {
		return err
	}
	for _, m := range z.members { // names are kept once, in MANIFEST's text
		if e := z.file(m.Path); e != nil {
			e.Name = m.Path
		}
	}
	return nil
}

// names gives the names of all files.
func (z *Reader) names(yield func(name string) bool) {
	for _, e := range z.files {
		if !yield(e.Name) {
			return
		}
	}
}

// held returns what the zip says of a member.
func (z *Reader) held(path string) (Member, bool) {
	e := z.file(path)
	if e == nil {
		return Member{}, false
	}
	m := Member{Size: e.Size, Place: PlaceStored, Ranged: true}
	if e.Method != zipdir.Stored {
		m.Place, m.Ranged = PlaceCompressed, false
	}
	if e.Symlink {
		m.Target, m.Size = unreadTarget, -1
	}
	return m, true
}

// readOwn reads MANIFEST or LINKS: nothing but a CRC vouches for them. It
// returns nil where there is none.
func (z *Reader) readOwn(name string, limit int64) ([]byte, error) {
	e := z.file(name)
	switch {
	case e == nil:
		return nil, nil
	case e.Symlink:
		return nil, errorf(ErrFormat, name, "is a symlink")
	case e.Size > limit:
		return nil, errorf(ErrLimit, name, "is %d bytes long, and may be at most %d", e.Size, limit)
	}
	return z.readSmall(e)
}

// readSmall reads content without a hash and checks its size and CRC.
func (z *Reader) readSmall(e *zipdir.Entry) ([]byte, error) {
	r, err := z.openEntry(context.Background(), e)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b := bytes.NewBuffer(make([]byte, 0, min(e.Size, 1<<20)+bytes.MinRead))
	_, err = b.ReadFrom(verify(r, e.Name, "", e.Size, e.CRC))
	return b.Bytes(), err
}

// Findings implements [Source]: what only the zip can tell. Info-ZIP writes names
// that are UTF-8 and not marked as such. Here they are what their bytes say, as
// MANIFEST must list them.
func (z *Reader) Findings() []Finding {
	var found []Finding
	for _, e := range z.files {
		if !e.UTF8() && !isASCII(e.Name) {
			found = append(found, Finding{Path: e.Name, Err: errorf(ErrFormat, e.Name,
				"name is not ASCII, and the zip does not mark it as UTF-8: other readers see another name")})
		}
	}
	return found
}

// Members implements [Source].
func (z *Reader) Members(ctx context.Context) ([]Member, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if err := z.resolve(ctx); err != nil {
		return nil, err
	}
	return slices.Clone(z.members), nil
}

// resolve reads the targets of symlinks, once. z.mu is held.
func (z *Reader) resolve(ctx context.Context) error {
	if z.resolved || !z.linked {
		return nil
	}
	members := slices.Clone(z.members)
	left := int64(MaxNamesBytes) // for all targets
	for i := range members {
		m := &members[i]
		if m.Target == "" {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		e := z.file(m.Path)
		if e.Size > MaxPathBytes {
			return errorf(ErrInsecurePath, m.Path, "symlink's target is %d bytes long, and may be at most %d", e.Size,
				MaxPathBytes)
		}
		if left -= e.Size; left < 0 {
			return errTargets()
		}
		target, err := z.readSmall(e)
		if err != nil {
			return err
		}
		if m.Target = string(target); m.Target == "" {
			return errorf(ErrFormat, m.Path, "symlink has no target")
		}
	}
	if err := ResolveSymlinks(members); err != nil {
		return err
	}
	z.members, z.resolved = members, true
	return nil
}
