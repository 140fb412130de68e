package carton

import (
	"bytes"
	"context"
	"io"
)

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
