package carton

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/carton-oci/carton-oci/internal/zipdir"
)

// Reader is a carton in its zip form.
type Reader struct {
	r        io.ReaderAt
	closer   io.Closer // nil where the caller owns r
	manifest *Manifest
	links    *Links
	files    []*zipdir.Entry // by name, without folders

	mu       sync.Mutex // guards what follows
	members  []Member   // sorted; symlinks as they are found until resolved
	linked   bool       // there are symlinks
	resolved bool       // symlinks have their target's size and place
}

// NewReader reads the carton in the size bytes of r. No content is read but that
// of MANIFEST, LINKS and symlinks; carton.toml is not looked at: see [ReadInfo]
// and [Check].
//
// What is checked is the zip's structure, to the last byte. There is one end
// record, with nothing behind it but its comment, and one central directory,
// just before it. Members follow each other from byte 0 to the directory without
// gap or overlap, folders among them if they are empty. Every local header says
// what the directory says; sizes and CRC may be zero there if a data descriptor
// follows the data and is true. Methods are 0, 8 and 93. Nothing is encrypted,
// split over disks, a device, or hidden in a second name or a zip64 field that
// nothing asks for. Names are as [Paths] wants them. The zip, MANIFEST and LINKS
// list the same members, and symlinks end inside model/.
//
// A zip that breaks a rule is ErrFormat, ErrInsecurePath, ErrVersion,
// ErrChecksum or ErrLimit.
func NewReader(r io.ReaderAt, size int64) (*Reader, error) {
	z, dir, err := newReader(r, size)
	if err != nil {
		return nil, err
	}
	if err := dir.Check(r); err != nil {
		return nil, zipError(err)
	}
	if err := z.resolve(context.Background()); err != nil {
		return nil, err
	}
	return z, nil
}

// NewLazyReader is NewReader for an r that pays for every read: of the local
// headers it reads those of MANIFEST and LINKS, and each other when its member
// is opened. Symlinks are read by the first call of Members, or when one is
// opened.
func NewLazyReader(r io.ReaderAt, size int64) (*Reader, error) {
	z, _, err := newReader(r, size)
	return z, err
}

func newReader(r io.ReaderAt, size int64) (*Reader, *zipdir.Directory, error) {
	dir, err := zipdir.Read(r, size, zipdir.Options{
		MaxEntries:        MaxMembers + 2, // MANIFEST and LINKS
		MaxDirectoryBytes: MaxDirectoryBytes,
		Methods:           []zipdir.Method{zipdir.Stored, zipdir.Deflate, zipdir.Zstd},
		Symlinks:          true,
		Name:              (&zipNames{folders: map[string]bool{}}).add,
	})
	if err != nil {
		return nil, nil, zipError(err)
	}
	z := &Reader{r: dir.ReaderAt(), files: dir.Files}
	z.linked = slices.ContainsFunc(z.files, func(e *zipdir.Entry) bool { return e.Symlink })
	slices.SortFunc(z.files, func(a, b *zipdir.Entry) int { return strings.Compare(a.Name, b.Name) })
	if err := z.readLists(); err != nil {
		return nil, nil, err
	}
	z.r = r
	return z, dir, nil
}

// zipNames applies the one rule for names to the entries of a zip.
type zipNames struct {
	paths   Paths
	folders map[string]bool
}

func (n *zipNames) add(name string, folder bool) error {
	if !folder {
		return n.paths.Add(name)
	}
	if n.folders[name] {
		return errorf(ErrInsecurePath, name, "folder occurs twice")
	}
	n.folders[name] = true
	return n.paths.addFolder(name)
}

// zipError returns an error of a zip as one of this package.
func zipError(err error) error {
	var broken *zipdir.Error
	switch {
	case !errors.As(err, &broken):
		return err
	case errors.Is(err, zipdir.ErrLimit):
		return errorf(ErrLimit, broken.Name, "%s", broken.Msg)
	}
	return errorf(ErrFormat, broken.Name, "%s", broken.Msg)
}

// file returns the entry of that name, nil for none.
func (z *Reader) file(name string) *zipdir.Entry {
	i, ok := slices.BinarySearchFunc(z.files, name,
		func(e *zipdir.Entry, name string) int { return strings.Compare(e.Name, name) })
	if !ok {
		return nil
	}
	return z.files[i]
}

// Manifest implements [Source].
func (z *Reader) Manifest() *Manifest { return z.manifest }

// Links implements [Source].
func (z *Reader) Links() *Links { return z.links }

// Close closes the file that [Open] opened; it does nothing for a Reader over
// an io.ReaderAt of the caller's.
func (z *Reader) Close() error {
	if z.closer == nil {
		return nil
	}
	return z.closer.Close()
}
