package convert

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// expectedTar is what a tar layer of the mapping must be, byte for byte but for its
// members' content: it follows from the names, sizes and targets that
// run.carton.members lists or, where there is no list, that were found in it.
// Either is believed only as far as the bytes that come agree: the headers are
// compared here, the content by its hash.
type expectedTar struct {
	name  string // the layer's digest
	plan  *layout.TarPlan
	wrong string // what is said of another tar; "" where the annotation told the plan
}

// places gives the members of the tar, in its order, and where each lies. It is to
// be read to its end: which file is the last is only known there.
func (t *expectedTar) places(layer int) iter.Seq2[string, *place] {
	return func(yield func(string, *place) bool) {
		var last *place
		gap := int64(0)
		for e := range t.plan.Entries() {
			off, size, _ := t.plan.Extent(e.Path)
			p := &place{layer: layer, size: size, off: off, link: e.Target}
			if e.Target == "" { // a symlink is part of the gap before the next file
				p.tar, p.gap, last, gap = t, gap, p, off+size
			}
			if !yield(e.Path, p) {
				return
			}
		}
		if last != nil {
			last.last = true
		}
	}
}

// checkTar makes the expectedTar of a tar layer without a list, and wants it to be
// what was found. A tar of symlinks alone, which nobody reads any more, is compared
// as a whole.
func (s *Source) checkTar(ctx context.Context, i int) error {
	l, desc := &s.layers[i], s.manifest.Layers[i]
	var entries []layout.TarEntry
	for _, h := range l.entries {
		entries = append(entries, h.TarEntry)
	}
	plan, err := layout.NewTarPlan(entries)
	if err != nil {
		return err
	}
	t := &expectedTar{
		name: desc.Digest.String(), plan: plan,
		wrong: "the tar layer is not what mapping " + Mapping + " makes of its members",
	}
	if l.format == formatTar && plan.Size() != desc.Size ||
		s.hasModelsLink(i) && !slices.Contains(entries, modelsLink) {
		return t.differs()
	}
	files := 0
	for _, h := range l.entries {
		if off, _, ok := plan.Extent(h.Path); !ok || off != h.Offset {
			return t.differs()
		}
		if h.Target == "" {
			files++
		}
	}
	if files == 0 {
		got, err := plan.Digest(ctx, noContent)
		if err != nil {
			return err
		}
		if want := cmp.Or(l.diffID, desc.Digest); got != want {
			return t.differs()
		}
	}
	l.tar = t
	return nil
}

// noContent opens the content of an empty member: there is no other.
func noContent(context.Context, string, int64) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("")), nil
}

// check compares the bytes from one offset to another, which hold no content,
// with the plan's.
func (t *expectedTar) check(ctx context.Context, r io.Reader, from, to int64) error {
	want, err := t.bytes(ctx, from, to)
	if err != nil {
		return err
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(r, got); err != nil {
		return iox.Unexpected(err)
	}
	if !bytes.Equal(got, want) {
		return t.differs()
	}
	return nil
}

// checkEnd compares what follows the last member, which ends at from, and wants
// nothing behind it.
func (t *expectedTar) checkEnd(ctx context.Context, r io.Reader, from int64) error {
	if err := t.check(ctx, r, from, t.plan.Size()); err != nil {
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

func (t *expectedTar) bytes(ctx context.Context, from, to int64) ([]byte, error) {
	r, err := t.plan.Open(ctx, from, noContent)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b := make([]byte, to-from)
	_, err = io.ReadFull(r, b)
	return b, err
}

func (t *expectedTar) differs() error {
	err := error(&layout.Error{
		Object: t.name, Kind: layout.ErrFormat,
		Msg: cmp.Or(t.wrong, "the tar layer is not what its annotation "+AnnotationMembers+" says"),
	})
	return hint.With(err, "a program that changes dates or owners in tar layers (regctl image mod, skopeo with "+
		"another compression) makes others of them:"+
		" copy the artifact as it was pushed; to get at this copy's files: oras blob fetch --output - REPOSITORY@%s "+
		"| tar -x -C DIR, and compare them with MANIFEST", t.name)
}

// planOf makes the plan of a listed tar layer. Lines are looked up in m, line 0
// is MANIFEST. alias says that the tar has the symlink models besides.
func planOf(m *carton.Manifest, list []sizedLine, alias bool) (*layout.TarPlan, error) {
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
			return nil, listError("%s is not in the order of the tar", errtext.Quote(e.Path))
		}
		entries = append(entries, e)
	}
	if alias {
		entries = append(entries, modelsLink)
	}
	return layout.NewTarPlan(entries)
}
