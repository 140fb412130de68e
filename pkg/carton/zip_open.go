package carton

import (
	"context"
	"io"

	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/internal/zipdir"
)

// Open implements [Source].
func (z *Reader) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	if path == ManifestName {
		return io.NopCloser(z.manifest.NewReader()), nil
	}
	e, hash, err := z.lookup(ctx, path)
	if err != nil {
		return nil, err
	}
	r, err := z.openEntry(ctx, e)
	if err != nil {
		return nil, err
	}
	return verify(r, path, hash, e.Size, e.CRC), nil
}

// OpenRange implements [Source]. A range of a compressed member is decoded
// from the member's start. A stored one that is asked for to its end, from its
// start, must have the CRC-32 that the zip says.
func (z *Reader) OpenRange(ctx context.Context, path string, off, n int64) (io.ReadCloser, error) {
	if path == ManifestName {
		return rangeOf(z.manifest.NewReader(), nil, path, off, n)
	}
	e, _, err := z.lookup(ctx, path)
	if err != nil {
		return nil, err
	}
	if e.Method == zipdir.Stored && (off != 0 || n >= 0) {
		data, err := z.locate(e)
		if err != nil {
			return nil, err
		}
		return NewRange(path, e.Size, off, n, func(off, n int64) (io.ReadCloser, error) {
			return z.bytes(ctx, data+off, n)
		})
	}
	r, err := z.openEntry(ctx, e)
	switch {
	case err != nil:
		return nil, err
	case e.Method == zipdir.Stored:
		return verify(r, path, "", e.Size, e.CRC), nil
	}
	return skipTo(r, path, e.Size, off, n)
}

// lookup returns the entry that holds a member's content, and the content's hash.
func (z *Reader) lookup(ctx context.Context, path string) (*zipdir.Entry, string, error) {
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
	return z.file(m.Path), m.Hash, nil
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

// locate returns where the data of e begin, once its local header was checked.
func (z *Reader) locate(e *zipdir.Entry) (int64, error) {
	data, err := e.Check(z.r)
	return data, zipError(err)
}

func (z *Reader) openEntry(ctx context.Context, e *zipdir.Entry) (io.ReadCloser, error) {
	data, err := z.locate(e)
	if err != nil {
		return nil, err
	}
	packed, err := z.bytes(ctx, data, e.Packed)
	if err != nil {
		return nil, err
	}
	return iox.Over{ReadCloser: decodeZip(ctx, e.Name, e.Method, packed), Under: packed}, nil
}

// ranger is an io.ReaderAt that gives long ranges more cheaply as a stream: one
// over a network.
type ranger interface {
	OpenRange(ctx context.Context, off, n int64) (io.ReadCloser, error)
}

// longRange is from how many bytes on a ranger is asked for a stream: less comes
// through ReadAt, which may have it already.
const longRange = 1 << 20

// bytes opens n bytes of the zip.
func (z *Reader) bytes(ctx context.Context, off, n int64) (io.ReadCloser, error) {
	if r, ok := z.r.(ranger); ok && n >= longRange {
		return r.OpenRange(ctx, off, n)
	}
	return io.NopCloser(io.NewSectionReader(z.r, off, n)), nil
}

// Sizes implements [Source]: what has a size has it.
func (*Reader) Sizes(context.Context, []Member) error { return nil }

// CheckFraming implements [Source]: the zip's structure was checked when it was
// opened, and a member's local header is before its content is read.
func (z *Reader) CheckFraming(context.Context, string) error { return nil }

// CRC implements [Source].
func (z *Reader) CRC(path string) (uint32, bool) {
	e := z.file(path)
	if e == nil || e.Symlink || e.CRC == 0 {
		return 0, false
	}
	return e.CRC, true
}
