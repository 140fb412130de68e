package carton

import (
	"context"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/download"
	"github.com/carton-oci/carton-oci/internal/place"
	"github.com/carton-oci/carton-oci/pkg/progress"
)

// AssembleOptions say how a carton is written. The zero value is useful.
type AssembleOptions struct {
	// Replace lets a file that exists be replaced, once the new one is complete.
	Replace bool
	// Concurrency is how many members, or ranges of them, are read at once; 0 is 8.
	Concurrency int
	// Thin makes a thin carton: these links are written as LINKS, and members are
	// left out whose hash they list. Inside stay whatever they list: carton.toml,
	// symlinks, and members outside of model/ unless the source has them linked,
	// because loaders don't check the hash of linked metadata.
	Thin *Links
	// Copies, which may be nil, are what is here already of the members. They are
	// closed before the output takes its name, which one of them may have.
	Copies *Copies
	// Progress is told about every member that is read.
	Progress progress.Func
	// Resumed, which may be nil, is told at the end how many bytes of the output an
	// earlier run has brought.
	Resumed func(n int64)
}

// Assemble writes the canonical carton ([Plan]) of a source to the file name.
// The same members give the same bytes, whatever the source and the options
// but for Thin.
//
// Every member is verified while it is written; one that is Ranged in several
// ranges at once. The file appears under its name by one rename, when it is
// complete and on the disk; until then it is NAME.partial beside it. Memory does
// not depend on the members' sizes.
//
// After an error NAME.partial and its journal stay, with the hint that the same call
// goes on with them, unless nothing has arrived or a member was refused and refused
// again when it was read once more (internal/download has the rule). What was left
// is read and hashed again before it is believed. The output of another carton
// replaces it once that can be had.
//
// A file that exists is ErrExist without Replace; one that another process is
// writing is ErrBusy. A member whose size the source can't tell is ErrLink.
// Errors of the source are returned as they are; where one has a method
// Temporary() bool that returns true, the member is read again, three times in
// all.
func Assemble(ctx context.Context, name string, src Source, opts AssembleOptions) error {
	out, err := place.Create(name, place.Options{Replace: opts.Replace, Resume: true})
	if err != nil {
		return err
	}
	a := &assembly{
		out: out, partial: download.NewPartial(out),
		transfer: transfer{src, opts.Concurrency, opts.Progress, opts.Copies},
	}
	err = a.fill(ctx, opts.Thin)
	opts.Copies.Close() // Windows replaces nothing that is open
	if err := a.partial.End(err); err != nil {
		return err
	}
	if opts.Resumed != nil {
		opts.Resumed(a.partial.Resumed())
	}
	return nil
}

// fill plans the carton and writes it.
func (a *assembly) fill(ctx context.Context, thin *Links) (err error) {
	var members []Member
	if members, a.plan, a.text, err = planOf(ctx, a.src, thin); err != nil {
		return err
	}
	return a.write(ctx, members)
}

// planOf plans the canonical carton of a source: its members, and those that are
// written from memory.
func planOf(
	ctx context.Context, src Source, thin *Links,
) (members []Member, plan *Plan, text map[string][]byte, err error) {
	if members, err = listMembers(ctx, src); err != nil {
		return nil, nil, nil, err
	}
	text = map[string][]byte{ManifestName: src.Manifest().Bytes()}
	if thin != nil {
		members = slices.DeleteFunc(members, func(m Member) bool { return leftOut(m, thin) })
		text[LinksName] = thin.Marshal()
	}
	if err := src.Sizes(ctx, members); err != nil {
		return nil, nil, nil, err
	}
	all := slices.Clone(members)
	for p, b := range text {
		all = append(all, Member{Path: p, Size: int64(len(b))})
	}
	for _, m := range members {
		if m.Size < 0 && m.Target == "" {
			return nil, nil, nil, errorf(ErrLink, m.Path, "no place that it is linked to tells its size")
		}
	}
	plan, err = NewPlan(all)
	return members, plan, text, err
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
	return members, ResolveSymlinks(members)
}

// assembly is a canonical carton that is being written.
type assembly struct {
	transfer
	out     *place.File
	partial *download.Partial
	plan    *Plan
	text    map[string][]byte // members that are written from memory
}

// write fills the file.
func (a *assembly) write(ctx context.Context, members []Member) error {
	var symlinks []Member
	members = slices.DeleteFunc(members, func(m Member) bool {
		if m.Target != "" {
			symlinks = append(symlinks, m)
		}
		return m.Target != ""
	})
	job := a.job(members, a)
	job.Extent = a.plan.Size()
	if err := a.partial.TakeOver(ctx, a.src.Manifest().ModelHash(), &job); err != nil {
		return place.Explain("write", a.out.Name(), err)
	}
	// What is missing at the end would be a hole, never a short file.
	if err := a.out.Truncate(a.plan.Size()); err != nil {
		return err
	}
	for p, b := range a.text {
		if err := a.entry(p, b, crcOf(b)); err != nil {
			return err
		}
	}
	for _, m := range symlinks {
		i, _ := a.plan.find(m.Path)
		target := []byte(a.plan.Member(i).Target)
		if err := a.entry(m.Path, target, crcOf(target)); err != nil {
			return err
		}
	}
	if err := a.partial.Run(ctx, a.options()); err != nil {
		return err
	}
	tail, err := a.plan.Tail()
	if err != nil {
		return err
	}
	_, err = a.out.WriteAt(tail, a.plan.Size()-int64(len(tail)))
	return err
}

func (a *assembly) offset(m Member) int64 {
	off, _, _ := a.plan.Extent(m.Path)
	return off
}

func (a *assembly) create(m Member) (download.File, error) {
	return &extent{a.out, a.offset(m)}, nil
}

// done writes the header of a member whose content is there.
func (a *assembly) done(m Member, _ download.File, _ int64, crc uint32) error {
	return a.entry(m.Path, nil, crc)
}

// extent is a member's place in the file.
type extent struct {
	out *place.File
	off int64
}

func (e *extent) ReadAt(b []byte, off int64) (int, error)  { return e.out.ReadAt(b, e.off+off) }
func (e *extent) WriteAt(b []byte, off int64) (int, error) { return e.out.WriteAt(b, e.off+off) }
func (e *extent) Close() error                             { return nil }

func (e *extent) StartWriteback(off, n int64) { e.out.StartWriteback(e.off+off, n) }

// entry writes a member's header, and its data where that is given.
func (a *assembly) entry(path string, data []byte, crc uint32) error {
	if err := a.plan.SetCRC(path, crc); err != nil {
		return err
	}
	i, _ := a.plan.find(path) // as SetCRC has
	h, err := a.plan.Header(i)
	if err != nil {
		return err
	}
	off, _, _ := a.plan.Extent(path)
	_, err = a.out.WriteAt(append(h, data...), off-int64(len(h)))
	return err
}
