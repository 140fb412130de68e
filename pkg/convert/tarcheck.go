package convert

import (
	"bytes"
	"context"
	"io"
	"strings"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// tarCheck is what a tar layer must be, byte for byte but for its members'
// content, because run.carton.members says which members of which sizes it
// holds. What it says is believed only as far as the bytes that come agree: the
// headers are compared here, the content by its hash.
type tarCheck struct {
	name string // the layer's digest
	plan *layout.TarPlan
}

// places returns where each member of the tar lies.
func (t *tarCheck) places(layer int) map[string]*place {
	places := map[string]*place{}
	gap := int64(0)
	entries := t.plan.Entries()
	for i, e := range entries {
		off, size, _ := t.plan.Extent(e.Path)
		places[e.Path] = &place{
			layer: layer, size: size, off: off, tar: t, gap: gap, last: i == len(entries)-1,
		}
		gap = off + size
	}
	return places
}

// check compares the bytes from one offset to another, which hold no content,
// with the plan's.
func (t *tarCheck) check(ctx context.Context, r io.Reader, from, to int64) error {
	want, err := t.bytes(ctx, from, to)
	if err != nil {
		return err
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(r, got); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	if !bytes.Equal(got, want) {
		return t.differs()
	}
	return nil
}

// checkEnd compares what follows the last member, and wants nothing behind it.
func (t *tarCheck) checkEnd(ctx context.Context, r *stream) error {
	if err := t.check(ctx, r, r.pos, t.plan.Size()); err != nil {
		return err
	}
	switch n, err := io.ReadFull(r, make([]byte, 1)); {
	case n > 0:
		return t.differs()
	case err != io.EOF: // a wrapped EOF is a fault, not the end
		return err
	}
	return nil
}

func (t *tarCheck) bytes(ctx context.Context, from, to int64) ([]byte, error) {
	r, err := t.plan.Open(ctx, from, func(context.Context, string, int64) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("")), nil // of an empty member: there is no other content
	})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b := make([]byte, to-from)
	_, err = io.ReadFull(r, b)
	return b, err
}

func (t *tarCheck) differs() error {
	return &layout.Error{
		Object: t.name, Kind: layout.ErrFormat,
		Msg: "the tar layer is not what its annotation " + AnnotationMembers + " says",
	}
}

// planOf makes the plan of a listed tar layer. Lines are looked up in m, line 0
// is MANIFEST.
func planOf(m *carton.Manifest, list []sizedLine) (*layout.TarPlan, error) {
	byLine := m.Entries()
	entries := make([]layout.TarEntry, 0, len(list))
	for _, it := range list {
		e := layout.TarEntry{Path: carton.ManifestName, Size: it.size}
		if it.line != manifestLine {
			if it.line > len(byLine) {
				return nil, listError("it names line %d of a MANIFEST with %d lines", it.line, len(byLine))
			}
			e.Path = byLine[it.line-1].Path
		}
		if n := len(entries); n > 0 && entries[n-1].Path >= e.Path {
			return nil, listError("%s is not in the order of the tar", carton.QuotePath(e.Path))
		}
		entries = append(entries, e)
	}
	return layout.NewTarPlan(entries)
}
