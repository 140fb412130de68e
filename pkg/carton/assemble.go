package carton

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/hint"
	"github.com/carton-oci/carton-oci/internal/place"
	"github.com/carton-oci/carton-oci/pkg/progress"
)

// AssembleOptions say how a carton is written. The zero value is useful.
type AssembleOptions struct {
	// Replace lets a file that exists be replaced, once the new one is complete.
	Replace bool
	// Concurrency is how many members are read at once; 0 is 8.
	Concurrency int
	// Thin makes a thin carton: these links are written as LINKS, and members are
	// left out whose hash they list. Inside stay whatever they list: carton.toml,
	// symlinks, and members outside of model/ unless the source has them linked,
	// because loaders don't check the hash of linked metadata.
	Thin *Links
	// Progress is told about every member that is read.
	Progress progress.Func
}

// Assemble writes the canonical carton ([Plan]) of a source to the file name.
// The same members give the same bytes, whatever the source and the options
// but for Thin.
//
// Every member is verified while it is written. The file appears under its name
// by one rename, when it is complete and on the disk; until then it is
// NAME.partial beside it, and after an error nothing is left. Memory does not
// depend on the members' sizes.
//
// A file that exists is ErrExist without Replace; one that another process is
// writing is ErrBusy. A member whose size the source can't tell is ErrLink.
// Errors of the source are returned as they are; where one has a method
// Temporary() bool that returns true, the member is read again, three times in
// all.
func Assemble(ctx context.Context, name string, src Source, opts AssembleOptions) error {
	out, err := place.Create(name, place.Options{Replace: opts.Replace})
	if err != nil {
		return err
	}
	err = assemble(ctx, out, src, opts)
	if err == nil {
		err = out.Commit()
	}
	return discarded(out, err)
}

// discarded removes an output that was not committed, and returns err.
func discarded(out interface{ Discard() error }, err error) error {
	if left := out.Discard(); left != nil {
		return hint.With(err, "%v: remove it by hand", left)
	}
	return err
}

func assemble(ctx context.Context, out *place.File, src Source, opts AssembleOptions) error {
	members, err := listMembers(ctx, src)
	if err != nil {
		return err
	}
	a := &assembly{out: out, transfer: transfer{src, opts.Concurrency, opts.Progress}}
	if opts.Thin != nil {
		members = slices.DeleteFunc(members, func(m Member) bool { return leftOut(m, opts.Thin) })
	}
	if err := a.lay(members, src.Manifest(), opts.Thin); err != nil {
		return err
	}
	return a.write(ctx, members)
}

// leftOut reports whether a thin carton with these links does not hold a member.
func leftOut(m Member, links *Links) bool {
	switch {
	case m.Path == InfoName, m.Target != "", len(links.URLs[m.Hash]) == 0:
		return false
	}
	return strings.HasPrefix(m.Path, modelFolder) || m.Place == PlaceLinked
}

// listMembers returns a source's members, checked against its MANIFEST and with
// symlinks resolved: what is written must be right whoever implements Source.
func listMembers(ctx context.Context, src Source) ([]Member, error) {
	members, err := src.Members(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.Path, b.Path) })
	for i, m := range members {
		e, ok := src.Manifest().Lookup(m.Path)
		if !ok || e.Hash != m.Hash || i > 0 && members[i-1].Path == m.Path {
			return nil, errorf(ErrFormat, m.Path, "is not what MANIFEST lists")
		}
	}
	if got, want := len(members), len(src.Manifest().Entries()); got != want {
		return nil, errorf(ErrFormat, ManifestName, "lists %d members, but there are %d", want, got)
	}
	return members, resolveSymlinks(members)
}

// assembly is a canonical carton that is being written.
type assembly struct {
	transfer
	out  *place.File
	plan *Plan
	text map[string][]byte // members that are written from memory
}

// lay makes the plan.
func (a *assembly) lay(members []Member, manifest *Manifest, links *Links) error {
	a.text = map[string][]byte{ManifestName: manifest.Bytes()}
	if links != nil {
		a.text[LinksName] = links.Marshal()
	}
	all := slices.Clone(members)
	for p, b := range a.text {
		all = append(all, Member{Path: p, Size: int64(len(b))})
	}
	for _, m := range members {
		if m.Size < 0 && m.Target == "" {
			return errorf(ErrLink, m.Path, "no place that it is linked to tells its size")
		}
	}
	var err error
	a.plan, err = NewPlan(all)
	return err
}

// write fills the file. Its size is set first: what is missing at the end would
// be a hole, never a short file.
func (a *assembly) write(ctx context.Context, members []Member) error {
	if err := a.out.Truncate(a.plan.Size()); err != nil {
		return err
	}
	for p, b := range a.text {
		if err := a.entry(p, b, crcOf(b)); err != nil {
			return err
		}
	}
	var read []Member
	for _, m := range members {
		if m.Target == "" {
			read = append(read, m)
			continue
		}
		target := []byte(a.plan.Member(a.plan.byPath[m.Path]).Target)
		if err := a.entry(m.Path, target, crcOf(target)); err != nil {
			return err
		}
	}
	if err := a.each(ctx, read, a.member); err != nil {
		return err
	}
	tail, err := a.plan.Tail()
	if err != nil {
		return err
	}
	_, err = a.out.WriteAt(tail, a.plan.Size()-int64(len(tail)))
	return err
}

// member writes a member's content from the source, then its header.
func (a *assembly) member(ctx context.Context, m Member, buf []byte) error {
	off, _, _ := a.plan.Extent(m.Path)
	c, err := a.copy(ctx, m, io.NewOffsetWriter(a.out, off), buf)
	if err != nil {
		return err
	}
	return a.entry(m.Path, nil, c.crc)
}

// entry writes a member's header, and its data where that is given.
func (a *assembly) entry(path string, data []byte, crc uint32) error {
	if err := a.plan.SetCRC(path, crc); err != nil {
		return err
	}
	h, err := a.plan.Header(a.plan.byPath[path])
	if err != nil {
		return err
	}
	off, _, _ := a.plan.Extent(path)
	_, err = a.out.WriteAt(append(h, data...), off-int64(len(h)))
	return err
}
