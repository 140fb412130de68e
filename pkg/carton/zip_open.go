package carton

import (
	"context"
	"errors"
	"io"
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
	return verify(r, path, hash, e.size, e.crc), nil
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
	if e.method == zipStored && off == 0 && n < 0 {
		r, err := z.openEntry(ctx, e)
		if err != nil {
			return nil, err
		}
		return verify(r, path, "", e.size, e.crc), nil
	}
	if e.method == zipStored {
		return NewRange(path, e.size, off, n, func(off, n int64) (io.ReadCloser, error) {
			return z.bytes(ctx, e.data.Load()+off, n)
		})
	}
	r, err := z.openEntry(ctx, e)
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
	e := z.file(m.Path)
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

func (z *Reader) openEntry(ctx context.Context, e *zipEntry) (io.ReadCloser, error) {
	if err := z.locate(e); err != nil {
		return nil, err
	}
	packed, err := z.bytes(ctx, e.data.Load(), e.packed)
	if err != nil {
		return nil, err
	}
	return &unpacked{decodeZip(ctx, e.name, e.method, packed), packed}, nil
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

// unpacked closes what is unpacked together with what it is read from.
type unpacked struct {
	io.ReadCloser
	packed io.Closer
}

func (u *unpacked) Close() error { return errors.Join(u.ReadCloser.Close(), u.packed.Close()) }

// Sizes implements [Source]: what has a size has it.
func (*Reader) Sizes(context.Context, []Member) error { return nil }

// CheckFraming implements [Source]: the zip's structure was checked when it was
// opened, and a member's local header is before its content is read.
func (z *Reader) CheckFraming(context.Context, string) error { return nil }

// CRC implements [Source].
func (z *Reader) CRC(path string) (uint32, bool) {
	e := z.file(path)
	if e == nil || e.link || e.crc == 0 {
		return 0, false
	}
	return e.crc, true
}
