package carton

import (
	"bytes"
	"context"
	"io"
	"maps"
	"slices"
	"sync"
)

// Reader is a carton in its zip form.
type Reader struct {
	r        io.ReaderAt
	closer   io.Closer // nil where the caller owns r
	manifest *Manifest
	links    *Links
	index    map[string]*zipEntry

	mu       sync.Mutex // guards what follows
	members  []Member   // sorted; symlinks as they are found until resolved
	linked   bool       // there are symlinks
	resolved bool       // symlinks have their target's size and place
}

// NewReader reads the carton in the size bytes of r. No content is read but that
// of MANIFEST, LINKS and symlinks; carton.toml is not looked at: see [ReadInfo]
// and [Check].
//
// What is checked is the zip's structure, to the last byte. There is one end
// record, with nothing behind it but its comment, and one central directory,
// just before it. Members follow each other from byte 0 to the directory without
// gap or overlap, folders among them if they are empty. Every local header says
// what the directory says; sizes and CRC may be zero there if a data descriptor
// follows the data and is true. Methods are 0, 8 and 93. Nothing is encrypted,
// split over disks, a device, or hidden in a second name or a zip64 field that
// nothing asks for. Names are as [Paths] wants them. The zip, MANIFEST and LINKS
// list the same members, and symlinks end inside model/.
//
// A zip that breaks a rule is ErrFormat, ErrInsecurePath, ErrVersion,
// ErrChecksum or ErrLimit.
func NewReader(r io.ReaderAt, size int64) (*Reader, error) {
	z, entries, err := newReader(r, size)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if err := z.locate(e); err != nil {
			return nil, err
		}
	}
	if err := z.resolve(context.Background()); err != nil {
		return nil, err
	}
	return z, nil
}

// NewLazyReader is NewReader for an r that pays for every read: of the local
// headers it reads those of MANIFEST and LINKS, and each other when its member
// is opened. Symlinks are read by the first call of Members, or when one is
// opened.
func NewLazyReader(r io.ReaderAt, size int64) (*Reader, error) {
	z, _, err := newReader(r, size)
	return z, err
}

func newReader(r io.ReaderAt, size int64) (*Reader, []*zipEntry, error) {
	tail, err := readZipTail(r, size)
	if err != nil {
		return nil, nil, err
	}
	end, err := readZipEnd(tail)
	if err != nil {
		return nil, nil, err
	}
	entries, err := readZipDirectory(tail, end)
	if err != nil {
		return nil, nil, err
	}
	z := &Reader{r: tail, index: make(map[string]*zipEntry, len(entries))}
	for _, e := range entries {
		if !e.folder {
			z.index[e.name] = e
			z.linked = z.linked || e.link
		}
	}
	if err := z.readLists(); err != nil {
		return nil, nil, err
	}
	z.r = r
	return z, entries, nil
}

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
	z.members, err = matchMembers(z.manifest, z.links, held{what: "zip", len: len(z.index), get: z.held, all: maps.Keys(z.index)})
	return err
}

// held returns what the zip says of a member.
func (z *Reader) held(path string) (Member, bool) {
	e, ok := z.index[path]
	if !ok {
		return Member{}, false
	}
	m := Member{Size: e.size, Place: PlaceStored}
	if e.method != zipStored {
		m.Place = PlaceCompressed
	}
	if e.link {
		m.Target, m.Size = unreadTarget, -1
	}
	return m, true
}

// readOwn reads MANIFEST or LINKS: nothing but a CRC vouches for them. It
// returns nil where there is none.
func (z *Reader) readOwn(name string, limit int64) ([]byte, error) {
	e := z.index[name]
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
	r, err := z.openEntry(e)
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

// Manifest implements [Source].
func (z *Reader) Manifest() *Manifest { return z.manifest }

// Links implements [Source].
func (z *Reader) Links() *Links { return z.links }

// warnings gives [Check] what only the zip can tell.
func (z *Reader) warnings() []Finding {
	var found []Finding
	for _, name := range sortedKeys(z.index) {
		if z.index[name].unmarked() {
			found = append(found, Finding{Path: name, Err: errorf(ErrFormat, name,
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
	for i := range members {
		m := &members[i]
		if m.Target == "" {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		e := z.index[m.Path]
		if e.size > MaxPathBytes {
			return errorf(ErrInsecurePath, m.Path, "symlink's target is %d bytes long, want at most %d", e.size, MaxPathBytes)
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

// Open implements [Source].
func (z *Reader) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	if path == ManifestName {
		return io.NopCloser(bytes.NewReader(z.manifest.Bytes())), nil
	}
	e, hash, err := z.lookup(ctx, path)
	if err != nil {
		return nil, err
	}
	r, err := z.openEntry(e)
	if err != nil {
		return nil, err
	}
	return verify(r, path, hash, e.size, e.crc), nil
}

// OpenRange implements [Source]. A range of a compressed member is decoded
// from the member's start.
func (z *Reader) OpenRange(ctx context.Context, path string, off, n int64) (io.ReadCloser, error) {
	if path == ManifestName {
		return rangeOf(bytes.NewReader(z.manifest.Bytes()), nil, path, off, n)
	}
	e, _, err := z.lookup(ctx, path)
	if err != nil {
		return nil, err
	}
	if e.method == zipStored {
		return rangeOf(io.NewSectionReader(z.r, e.data.Load(), e.size), nil, path, off, n)
	}
	r, err := z.openEntry(e)
	if err != nil {
		return nil, err
	}
	return skipTo(r, path, e.size, off, n)
}

// lookup returns the entry that holds a member's content, its data located, and
// the content's hash.
func (z *Reader) lookup(ctx context.Context, path string) (*zipEntry, string, error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	m, err := z.regular(ctx, path)
	if err != nil {
		return nil, "", err
	}
	if m.Place == PlaceLinked {
		return nil, "", errLinked(path)
	}
	e := z.index[m.Path]
	return e, m.Hash, z.locate(e)
}

// regular returns the member at path, or the one that a symlink there ends at.
func (z *Reader) regular(ctx context.Context, path string) (Member, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	m, ok := findMember(z.members, path)
	if !ok {
		return m, errNoMember(path)
	}
	if m.Target == "" {
		return m, nil
	}
	if err := z.resolve(ctx); err != nil {
		return m, err
	}
	return followSymlinks(z.members, path)
}

// locate checks the local header of e, once. Two callers at the same time may
// both do it.
func (z *Reader) locate(e *zipEntry) error {
	if e.data.Load() != 0 {
		return nil
	}
	return checkZipLocal(z.r, e)
}

func (z *Reader) openEntry(e *zipEntry) (io.ReadCloser, error) {
	if err := z.locate(e); err != nil {
		return nil, err
	}
	return decodeZip(e.name, e.method, io.NewSectionReader(z.r, e.data.Load(), e.packed))
}

// Close closes the file that [Open] opened; it does nothing for a Reader over
// an io.ReaderAt of the caller's.
func (z *Reader) Close() error {
	if z.closer == nil {
		return nil
	}
	return z.closer.Close()
}
