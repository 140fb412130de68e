package carton

import (
	"bytes"
	"context"
	"io"
	"slices"
)

// readLists reads MANIFEST and LINKS and matches them with the zip.
func (z *Reader) readLists() error {
	raw, err := z.readOwn(ManifestName, MaxManifestBytes)
	if err != nil {
		return err
	}
	if raw == nil {
		return errNoManifest("zip")
	}
	if z.manifest, err = ParseManifest(raw); err != nil {
		return err
	}
	if raw, err = z.readOwn(LinksName, MaxLinksBytes); err != nil {
		return err
	}
	if raw != nil {
		if z.links, err = ParseLinks(raw); err != nil {
			return err
		}
	}
	z.members, err = matchMembers(z.manifest, z.links, held{what: "zip", len: len(z.files), get: z.held, all: z.names})
	if err != nil {
		return err
	}
	for _, m := range z.members { // names are kept once, in MANIFEST's text
		if e := z.file(m.Path); e != nil {
			e.name = m.Path
		}
	}
	return nil
}

// names gives the names of all files.
func (z *Reader) names(yield func(name string) bool) {
	for _, e := range z.files {
		if !yield(e.name) {
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
	m := Member{Size: e.size, Place: PlaceStored, Ranged: true}
	if e.method != zipStored {
		m.Place, m.Ranged = PlaceCompressed, false
	}
	if e.link {
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
	case e.link:
		return nil, errorf(ErrFormat, name, "is a symlink")
	case e.size > limit:
		return nil, errorf(ErrLimit, name, "is %d bytes, want at most %d", e.size, limit)
	}
	return z.readSmall(e)
}

// readSmall reads content without a hash and checks its size and CRC.
func (z *Reader) readSmall(e *zipEntry) ([]byte, error) {
	r, err := z.openEntry(context.Background(), e)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b := bytes.NewBuffer(make([]byte, 0, min(e.size, 1<<20)+bytes.MinRead))
	if _, err := b.ReadFrom(io.LimitReader(r, e.size+1)); err != nil {
		return nil, of(e.name, err)
	}
	if got := int64(b.Len()); got != e.size {
		return nil, errorf(ErrChecksum, e.name, "content is not the %d bytes that the zip says", e.size)
	}
	if got := crcOf(b.Bytes()); e.crc != 0 && got != e.crc {
		return nil, errorf(ErrChecksum, e.name, "got CRC %08x, the zip says %08x", got, e.crc)
	}
	return b.Bytes(), nil
}

// Findings implements [Source]: what only the zip can tell.
func (z *Reader) Findings() []Finding {
	var found []Finding
	for _, e := range z.files {
		if e.unmarked() {
			found = append(found, Finding{Path: e.name, Err: errorf(ErrFormat, e.name,
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
		if e.size > MaxPathBytes {
			return errorf(ErrInsecurePath, m.Path, "symlink's target is %d bytes long, want at most %d", e.size, MaxPathBytes)
		}
		if left -= e.size; left < 0 {
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
	if err := resolveSymlinks(members); err != nil {
		return err
	}
	z.members, z.resolved = members, true
	return nil
}
