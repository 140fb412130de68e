package carton

import (
	"context"
	"io"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/place"
	"github.com/carton-oci/carton-oci/pkg/progress"
)

// ExtractOptions say what is extracted, and how. The zero value extracts
// everything.
type ExtractOptions struct {
	// Replace lets a folder that exists be replaced, once the new one is complete.
	// What the old one held is removed. A folder that holds the current folder or
	// the user's home is never replaced.
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
	// Concurrency is how many members are read at once; 0 is 8.
	Concurrency int
	// Progress is told about every member that is read.
	Progress progress.Func
}

// Extract writes a source's members to files of the folder dir. Extracted
// whole, with MANIFEST, it is a carton again.
//
// Every member is verified while it is written. The folder appears under its
// name by one rename, when all of it is complete and on the disk; until then it
// is DIR.partial beside it, and after an error nothing is left. Files have the
// mode 0644, folders 0755, whatever the umask; nothing is written through a
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
	if err := checkPatterns(opts); err != nil {
		return err
	}
	out, err := place.CreateFolder(dir, place.Options{Replace: opts.Replace})
	if err != nil {
		return err
	}
	err = extract(ctx, out, src, opts)
	if err == nil {
		err = out.Commit()
	}
	return discarded(out, err)
}

func extract(ctx context.Context, out *place.Folder, src Source, opts ExtractOptions) error {
	all, err := listMembers(ctx, src)
	if err != nil {
		return err
	}
	chosen, err := choose(all, opts)
	if err != nil {
		return err
	}
	x := &extraction{
		transfer: transfer{src, opts.Concurrency, opts.Progress},
		out:      out,
		root:     folderPrefix(opts.Folder),
	}
	if err := x.write(ctx, chosen); err != nil {
		return err
	}
	if len(chosen) == len(all) && x.root == "" {
		return x.manifest()
	}
	return nil
}

// extraction is a folder that is being filled.
type extraction struct {
	transfer
	out  *place.Folder
	root string // prefix of member paths that is left out: "", or ends in "/"
}

// to returns a member's path in the folder.
func (x *extraction) to(m Member) string { return strings.TrimPrefix(m.Path, x.root) }

// write makes folders, then files, then symlinks: no file is ever made where a
// symlink could lead somewhere else.
func (x *extraction) write(ctx context.Context, members []Member) error {
	var files, symlinks []Member
	for _, m := range members {
		if err := checkLocalName(runtime.GOOS, x.to(m)); err != nil {
			return err
		}
		if m.Target == "" {
			files = append(files, m)
		} else {
			symlinks = append(symlinks, m)
		}
	}
	for _, dir := range x.folders(members) {
		if err := x.out.Mkdir(dir); err != nil {
			return err
		}
	}
	if err := x.each(ctx, files, x.file); err != nil {
		return err
	}
	for _, m := range symlinks {
		if err := x.out.Symlink(m.Target, x.to(m)); err != nil {
			return err
		}
	}
	return nil
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

// file writes a member's content.
func (x *extraction) file(ctx context.Context, m Member, buf []byte) error {
	f, err := x.out.Create(x.to(m))
	if err != nil {
		return err
	}
	defer f.Close()
	w := &explainedWriter{f, func(err error) error { return x.out.Explain("write", x.to(m), err) }}
	c, err := x.copy(ctx, m, w, buf)
	if err != nil {
		return err
	}
	if m.Size < 0 {
		// An attempt that failed may have written more.
		if err := f.Truncate(c.size); err != nil {
			return w.explain(err)
		}
	}
	return w.explain(f.Close())
}

func (x *extraction) manifest() error {
	f, err := x.out.Create(ManifestName)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(x.src.Manifest().Bytes()); err != nil {
		return x.out.Explain("write", ManifestName, err)
	}
	return x.out.Explain("write", ManifestName, f.Close())
}

// explainedWriter gives errors the name of the output.
type explainedWriter struct {
	w       io.WriterAt
	explain func(error) error
}

func (w *explainedWriter) WriteAt(p []byte, off int64) (int, error) {
	n, err := w.w.WriteAt(p, off)
	return n, w.explain(err)
}
