package carton

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"

	"github.com/carton-oci/carton-oci/internal/localfile"
)

// folder is a carton in its unpacked form.
type folder struct {
	fsys     fs.FS
	closer   io.Closer // nil where the caller owns fsys
	manifest *Manifest
	links    *Links
	members  []Member // sorted, symlinks resolved
}

// OpenDir opens the carton that is unpacked in a folder. Nothing outside of
// the folder is read, whatever symlinks say and whoever changes them meanwhile.
func OpenDir(dir string) (Source, error) {
	root, err := localfile.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	f, err := openFS(localfile.FS(root))
	if err != nil {
		root.Close()
		return nil, err
	}
	f.closer = root
	return f, nil
}

// OpenFS opens the carton that is unpacked in fsys, which must hold a
// MANIFEST. Every file of fsys must be listed there, but for the symlink
// [ModelsName] that a mounted image of a carton has, and every one listed must
// be there or in LINKS. Symlinks are read where fsys is an [fs.ReadLinkFS], and
// refused where not. The folders' listings are read, but no content except that
// of MANIFEST and LINKS; a file that changes later is ErrChecksum when it is
// read.
func OpenFS(fsys fs.FS) (Source, error) {
	return openFS(fsys)
}

func openFS(fsys fs.FS) (*folder, error) {
	raw, err := readOwnFile(fsys, ManifestName, MaxManifestBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoManifest("folder")
	}
	if err != nil {
		return nil, err
	}
	f := &folder{fsys: fsys}
	if f.manifest, err = ParseManifest(raw); err != nil {
		return nil, err
	}
	raw, err = readOwnFile(fsys, LinksName, MaxLinksBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		if f.links, err = ParseLinks(raw); err != nil {
			return nil, err
		}
	}
	found, err := walkFiles(context.Background(), fsys)
	if err != nil {
		return nil, err
	}
	if f.manifest.isModelsLink(ModelsName, found[ModelsName].Target) {
		delete(found, ModelsName)
	}
	files := held{
		what: "folder", len: len(found), all: maps.Keys(found),
		get: func(p string) (Member, bool) { m, ok := found[p]; return m, ok },
	}
	if f.members, err = matchMembers(f.manifest, f.links, files); err != nil {
		return nil, err
	}
	return f, resolveSymlinks(f.members)
}

// readOwnFile reads MANIFEST or LINKS, at most limit bytes.
func readOwnFile(fsys fs.FS, name string, limit int64) ([]byte, error) {
	if l, ok := fsys.(fs.ReadLinkFS); ok {
		info, err := l.Lstat(name)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, errorf(ErrFormat, name, "is not a regular file")
		}
	}
	f, err := openRegular(fsys, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAtMost(f, name, limit)
}

// readAtMost reads all of r, which must be at most limit bytes.
func readAtMost(r io.Reader, name string, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, errorf(ErrLimit, name, "is larger than %d bytes", limit)
	}
	return b, nil
}

// walkFiles returns the regular files and symlinks of fsys by path, with
// nothing of MANIFEST in them yet. Anything else but folders is ErrFormat.
func walkFiles(ctx context.Context, fsys fs.FS) (map[string]Member, error) {
	found := map[string]Member{}
	var paths Paths
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case p == ".":
			return nil
		case d.IsDir():
			return CheckPath(p)
		}
		if err := paths.Add(p); err != nil {
			return err
		}
		if len(found) >= MaxMembers+2 { // MANIFEST and LINKS
			return errorf(ErrLimit, "", "the folder holds more than %d files", MaxMembers)
		}
		found[p], err = fileMember(fsys, p, d)
		return err
	})
	return found, err
}

// fileMember says what lies at p of fsys.
func fileMember(fsys fs.FS, p string, d fs.DirEntry) (Member, error) {
	m := Member{Size: -1, Place: PlaceFile}
	switch d.Type() {
	case 0:
		info, err := d.Info()
		if err != nil {
			return m, err
		}
		m.Size, m.Ranged = info.Size(), true
	case fs.ModeSymlink:
		target, err := fs.ReadLink(fsys, p)
		if err != nil {
			return m, err
		}
		if m.Target = target; target == "" {
			return m, errorf(ErrFormat, p, "symlink has no target")
		}
	default:
		return m, errorf(ErrFormat, p, "is neither a file, a folder nor a symlink, but %s", localfile.Kind(d.Type()))
	}
	return m, nil
}

// Manifest implements [Source].
func (f *folder) Manifest() *Manifest { return f.manifest }

// Links implements [Source].
func (f *folder) Links() *Links { return f.links }

// Members implements [Source].
func (f *folder) Members(context.Context) ([]Member, error) {
	return slices.Clone(f.members), nil
}

// Open implements [Source].
func (f *folder) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	if path == ManifestName {
		return io.NopCloser(f.manifest.NewReader()), nil
	}
	r, m, err := f.open(ctx, path)
	if err != nil {
		return nil, err
	}
	return verify(r, path, m.Hash, m.Size, 0), nil
}

// OpenRange implements [Source].
func (f *folder) OpenRange(ctx context.Context, path string, off, n int64) (io.ReadCloser, error) {
	if path == ManifestName {
		return rangeOf(f.manifest.NewReader(), nil, path, off, n)
	}
	r, m, err := f.open(ctx, path)
	if err != nil {
		return nil, err
	}
	if at, ok := r.(io.ReaderAt); ok {
		return rangeOf(io.NewSectionReader(at, 0, m.Size), r, path, off, n)
	}
	return skipTo(r, path, m.Size, off, n)
}

// open opens the regular file where path ends, by its own name: no symlink of
// fsys is followed.
func (f *folder) open(ctx context.Context, path string) (fs.File, Member, error) {
	if err := ctx.Err(); err != nil {
		return nil, Member{}, err
	}
	m, ok := findMember(f.members, path)
	if !ok {
		return nil, m, errNoMember(path)
	}
	m, err := followSymlinks(f.members, m.Path)
	if err != nil {
		return nil, m, err
	}
	if m.Place == PlaceLinked {
		return nil, m, errLinked(path)
	}
	file, err := openRegular(f.fsys, m.Path)
	return file, m, err
}

// Sizes implements [Source]: what has a size has it.
func (*folder) Sizes(context.Context, []Member) error { return nil }

// CheckFraming implements [Source]: a file holds its member and nothing else.
func (f *folder) CheckFraming(context.Context, string) error { return nil }

// CRC implements [Source].
func (f *folder) CRC(string) (uint32, bool) { return 0, false }

// Findings implements [Source].
func (f *folder) Findings() []Finding { return nil }

// openRegular opens what was a regular file when the folder was listed.
func openRegular(fsys fs.FS, name string) (fs.File, error) {
	file, err := fsys.Open(name)
	if errors.Is(err, localfile.ErrKind) {
		return nil, errorf(ErrFormat, name, "is not a regular file any more")
	}
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errorf(ErrFormat, name, "is not a regular file any more")
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// Close closes the folder that [OpenDir] opened.
func (f *folder) Close() error {
	if f.closer == nil {
		return nil
	}
	return f.closer.Close()
}
