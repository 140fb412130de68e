package carton

import (
	"context"
	"io"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/download"
	"github.com/carton-oci/carton-oci/internal/place"
	"github.com/carton-oci/carton-oci/pkg/progress"
)

// ExtractOptions say what is extracted, and how. The zero value extracts
// everything.
type ExtractOptions struct {
	// Replace lets an unpacked carton be replaced, once the new one is complete: a
	// folder of which the MANIFEST in it lists everything. A choice of members, which
	// has no MANIFEST, may also take the place of files of the same names. A folder
	// that holds anything else is ErrExist, and stays as it is: there is no telling
	// whose that is, and a merge would leave a folder that is no carton. One that holds
	// the current folder or the user's home is never replaced.
	Replace bool
	// Include and Exclude are patterns for member paths. A member is extracted if
	// one of Include matches, or there are none, and none of Exclude does.
	//
	// A pattern is as in path.Match. Without a slash it is for the last component
	// of a path ("*.json"). With one it is for the whole path, component by
	// component ("model/*.bin"; "/carton.toml" for one at the root only), and a
	// component "**" stands for any number of them, none included
	// ("model/**/config.json"). A slash at the end stands for all below a folder
	// ("misc/").
	Include, Exclude []string
	// Folder extracts only what lies below this folder ("model"), which becomes
	// the root. Patterns still are for the paths in the carton.
	Folder string
	// Concurrency is how many members, or ranges of them, are read at once; 0 is 8.
	Concurrency int
	// Copies, which may be nil, are what is here already of the members. They are
	// closed before the output takes its name, which one of them may have.
	Copies *Copies
	// Progress is told about every member that is read.
	Progress progress.Func
	// Resumed, which may be nil, is told at the end how many bytes of the output an
	// earlier run has brought.
	Resumed func(n int64)
}

// Extract writes a source's members to files of the folder dir. Extracted
// whole, with MANIFEST, it is a carton again.
//
// Every member is verified while it is written; one that is Ranged in several
// ranges at once. The folder appears under its name by one rename, when all of it
// is complete and on the disk; until then it is DIR.partial beside it, which stays
// after an error as with [Assemble]. Of what was left only plain files are used,
// and only those that the same call would make. Files have the
// mode 0666 and folders 0777, but for the umask; nothing is written through a
// symlink or to a name that exists. A symlink whose target is not extracted
// becomes a file of the same content. MANIFEST is written if all members are,
// each at its own path.
//
// An empty folder may be there already; any other is ErrExist without Replace,
// and one that another process is writing ErrBusy. Where nothing is selected
// the error is fs.ErrNotExist; a pattern that is none is path.ErrBadPattern. A
// name that this system can't hold is ErrInsecurePath. Errors of the source are
// as with [Assemble].
func Extract(ctx context.Context, dir string, src Source, opts ExtractOptions) error {
	if err := CheckPatterns(slices.Concat(opts.Include, opts.Exclude)...); err != nil {
		return err
	}
	out, err := place.CreateFolder(dir, place.Options{Replace: opts.Replace, Resume: true})
	if err != nil {
		return err
	}
	x := &extraction{
		transfer: transfer{src, opts.Concurrency, opts.Progress, opts.Copies},
		out:      out,
		partial:  download.NewPartial(out),
	}
	err = x.fill(ctx, opts)
	opts.Copies.Close() // Windows replaces nothing that is open
	if err := x.partial.End(err); err != nil {
		return err
	}
	if opts.Resumed != nil {
		opts.Resumed(x.partial.Resumed())
	}
	return nil
}

// fill chooses the members and writes them.
func (x *extraction) fill(ctx context.Context, opts ExtractOptions) error {
	chosen, err := chooseOf(ctx, x.src, opts)
	if err != nil {
		return err
	}
	x.root = chosen.prefix
	for _, m := range chosen.members {
		if err := checkLocalName(runtime.GOOS, x.to(m)); err != nil {
			return err
		}
	}
	if err := x.out.MayReplace(chosen.replaceable()); err != nil {
		return err
	}
	if err := x.src.Sizes(ctx, chosen.members); err != nil {
		return err
	}
	err = x.write(ctx, chosen.members)
	if err == nil && chosen.whole {
		err = x.manifest()
	}
	return err
}

// extraction is a folder that is being filled.
type extraction struct {
	transfer
	out     *place.Folder
	partial *download.Partial
	root    string // prefix of member paths that is left out: "", or ends in "/"
}

// to returns a member's path in the folder.
func (x *extraction) to(m Member) string { return strings.TrimPrefix(m.Path, x.root) }

func (x *extraction) offset(Member) int64 { return 0 }

// write makes folders, then files, then symlinks: no file is ever made where a
// symlink could lead somewhere else.
func (x *extraction) write(ctx context.Context, members []Member) error {
	var files, symlinks []Member
	for _, m := range members {
		if m.Target == "" {
			files = append(files, m)
		} else {
			symlinks = append(symlinks, m)
		}
	}
	job := x.job(files, x)
	if err := x.takeOver(ctx, &job, files); err != nil {
		return err
	}
	if err := x.fit(files, symlinks, x.folders(members)); err != nil {
		return err
	}
	if err := x.partial.Run(ctx, x.options()); err != nil {
		return err
	}
	for _, m := range symlinks {
		if err := x.out.Symlink(m.Target, x.to(m)); err != nil {
			return err
		}
	}
	return nil
}

// fit makes the folders, and wants the file system to hold every name: what it can't
// hold shows before anything is fetched for it.
func (x *extraction) fit(files, symlinks []Member, folders []string) error {
	for _, dir := range folders {
		if err := x.out.Mkdir(dir); err != nil {
			return misfit(err)
		}
	}
	var uncommon []string
	for _, m := range files {
		if p := x.to(m); isUncommon(p) {
			uncommon = append(uncommon, p)
		}
	}
	symlink := ""
	if len(symlinks) > 0 {
		symlink = x.to(symlinks[0])
	}
	return misfit(x.out.Fits(uncommon, symlink))
}

// takeOver goes on with what an earlier run left, and removes of it what the job does
// not make.
func (x *extraction) takeOver(ctx context.Context, job *download.Job, files []Member) error {
	if err := x.partial.TakeOver(ctx, x.src.Manifest().ModelHash()+" "+x.root, job); err != nil {
		return x.out.Explain("write", ".", err)
	}
	if !x.out.Stale() {
		return nil
	}
	made := map[string]bool{}
	for _, m := range files {
		made[x.to(m)] = true
	}
	return x.out.Prune(func(path string) bool { return made[path] })
}

// folders returns the folders that members lie in, outer ones first.
func (x *extraction) folders(members []Member) []string {
	seen := map[string]bool{}
	var dirs []string
	for _, m := range members {
		for dir := path.Dir(x.to(m)); dir != "." && !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return dirs
}

// create makes the member's file, or opens what an earlier run left of it.
func (x *extraction) create(m Member) (download.File, error) {
	f, err := x.out.Create(x.to(m))
	if err != nil {
		return nil, err
	}
	return &explainedFile{f, func(op string, err error) error { return x.out.Explain(op, x.to(m), err) }}, nil
}

// done cuts the file of a member, which no file is before its hash was right: an
// attempt that failed may have written more, and who told its size may be wrong.
func (x *extraction) done(_ Member, f download.File, size int64, _ uint32) error {
	w, ok := f.(*explainedFile)
	if !ok {
		return nil
	}
	return w.explain("write", w.f.Truncate(size))
}

func (x *extraction) manifest() error {
	f, err := x.out.Create(ManifestName)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := x.src.Manifest().NewReader().WriteTo(f); err != nil {
		return x.out.Explain("write", ManifestName, err)
	}
	return x.out.Explain("write", ManifestName, f.Close())
}

// explainedFile gives errors the name of the output.
type explainedFile struct {
	f       *os.File
	explain func(op string, err error) error
}

func (w *explainedFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := w.f.WriteAt(p, off)
	return n, w.explain("write", err)
}

func (w *explainedFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := w.f.ReadAt(p, off)
	if err == io.EOF {
		return n, err
	}
	return n, w.explain("read", err)
}

func (w *explainedFile) StartWriteback(off, n int64) { place.StartWriteback(w.f, off, n) }

func (w *explainedFile) Close() error { return w.explain("write", w.f.Close()) }
