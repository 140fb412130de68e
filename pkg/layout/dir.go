package layout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/carton-oci/carton-oci/internal/localfile"
	"github.com/carton-oci/carton-oci/internal/place"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Dir is an image-layout folder as a [Store]. Several processes may use one
// folder: blobs and index.json appear by rename, complete and on the disk, and
// index.json is read, changed and replaced under a lock.
//
// A tag is the annotation org.opencontainers.image.ref.name of an entry of
// index.json. An image manifest that loses its last tag stays listed without
// one, as it stays in a registry.
//
// https://github.com/opencontainers/image-spec/blob/v1.1.1/image-layout.md
type Dir struct {
	path string
	refs subjects
}

var _ Store = (*Dir)(nil)

// OpenDir opens an image-layout folder that exists. Where there is none the
// error wraps ErrNotFound; a version of the format that is not known is
// ErrFormat.
func OpenDir(path string) (*Dir, error) {
	d := &Dir{path: path}
	if err := d.check(); err != nil {
		return nil, err
	}
	return d, nil
}

// CreateDir opens an image-layout folder to write to. One that does not exist,
// or is empty, becomes an image layout with the first push; before that nothing
// is made, and everything that is looked for is ErrNotFound. A folder that
// holds something else is ErrFormat.
func CreateDir(path string) (*Dir, error) {
	d := &Dir{path: path}
	err := d.check()
	if errors.Is(err, ErrNotFound) {
		err = d.checkEmpty()
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// Path returns the folder's path as it was given.
func (d *Dir) Path() string { return d.path }

func (d *Dir) subjects() *subjects { return &d.refs }

// Local implements [Store]: a folder is on this machine.
func (d *Dir) Local() bool { return true }

// BlobURL implements [Store]: a folder has no address.
func (d *Dir) BlobURL(digest.Digest) string { return "" }

// CheckArtifact implements [Store]: a folder takes anything.
func (d *Dir) CheckArtifact(context.Context, *Artifact) error { return nil }

// Mount returns false: a folder has no repositories.
func (d *Dir) Mount(context.Context, ocispec.Descriptor, Origin) (bool, error) { return false, nil }

// check wants an image layout of the one version that there is.
func (d *Dir) check() error {
	b, err := d.readFile(ocispec.ImageLayoutFile)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return errorf(ErrNotFound, d.path, "is not an image layout: there is no %s", ocispec.ImageLayoutFile)
	}
	if err != nil {
		return err
	}
	if err := checkVersion(filepath.Join(d.path, ocispec.ImageLayoutFile), b); err != nil {
		return err
	}
	return d.checkFolders()
}

// checkEmpty wants a folder that an image layout can be made in: an empty one,
// or what a process left that was killed while it made one.
func (d *Dir) checkEmpty() error {
	info, err := os.Stat(d.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && !info.IsDir():
		return errorf(ErrFormat, d.path, "is %s, want a folder", localfile.Kind(info.Mode()))
	}
	f, err := os.Open(d.path)
	if err != nil {
		return fmt.Errorf("open image layout: %w", err)
	}
	defer f.Close()
	names, err := f.Readdirnames(len(halfMade) + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("open image layout: %w", err)
	}
	for _, name := range names {
		if !slices.Contains(halfMade, name) {
			return hint.With(errorf(ErrFormat, d.path, "holds other files and is not an image layout"),
				"name a folder that is empty or does not exist yet")
		}
	}
	return d.checkFolders()
}

// halfMade is what create makes before the file that makes a folder a layout.
var halfMade = []string{
	ocispec.ImageBlobsDir, ocispec.ImageIndexFile, ocispec.ImageIndexFile + ".partial",
	ocispec.ImageIndexFile + ".partial.journal",
	ocispec.ImageLayoutFile + ".partial", ocispec.ImageLayoutFile + ".partial.journal",
}

// create makes what is missing of an image layout: the first push's part.
func (d *Dir) create(ctx context.Context) error {
	err := d.check()
	missing := errors.Is(err, ErrNotFound)
	if err != nil && !missing {
		return err
	}
	if err := os.MkdirAll(filepath.Join(d.path, blobFolder), 0o777); err != nil {
		return place.Explain("create image layout", d.path, err)
	}
	if !missing {
		return nil
	}
	syncFolder(filepath.Join(d.path, ocispec.ImageBlobsDir))
	syncFolder(filepath.Dir(d.path))
	if err := d.write(ctx, ocispec.ImageIndexFile, false, emptyIndex); err != nil {
		return err
	}
	// What makes the folder a layout comes last.
	return d.write(ctx, ocispec.ImageLayoutFile, false, func() ([]byte, error) {
		return []byte(layoutFile), nil
	})
}

// write puts a file of the folder in its place. give makes its content once
// nobody else is writing it; a file that exists is replaced or left as it is.
func (d *Dir) write(ctx context.Context, name string, replace bool, give func() ([]byte, error)) error {
	f, err := d.acquire(ctx, name, place.Options{Replace: replace})
	if f == nil || err != nil {
		return err
	}
	defer f.Discard() //nolint:errcheck // after Commit it does nothing
	b, err := give()
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(b, 0); err != nil {
		return err
	}
	return f.Commit()
}

// patience is how long is waited for another process that writes nothing: it may
// be stopped, or wait itself for a registry that takes its time.
var patience = 2 * time.Minute

// acquire begins a file of the folder, waiting while another process writes it.
// It returns nil where the file exists and is not to be replaced.
func (d *Dir) acquire(ctx context.Context, name string, opts place.Options) (*place.File, error) {
	const first, last = 5 * time.Millisecond, 250 * time.Millisecond
	path := filepath.Join(d.path, name)
	var seen string
	var since time.Time
	for wait := first; ; wait = min(2*wait, last) {
		f, err := place.Create(path, opts)
		if errors.Is(err, place.ErrExist) {
			return nil, nil //nolint:nilnil // documented
		}
		if !errors.Is(err, place.ErrBusy) {
			return f, err
		}
		if now := written(path); now != seen || since.IsZero() {
			seen, since = now, time.Now()
		}
		if time.Since(since) >= patience {
			return nil, heldTooLong(path, err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the process that writes %s: %w", path, ctx.Err())
		case <-time.After(wait):
		}
	}
}

// written tells states of a file that another process writes apart.
func written(path string) string {
	fi, err := os.Lstat(path + ".partial")
	if err != nil {
		return ""
	}
	return fmt.Sprint(fi.Size(), fi.ModTime().UnixNano())
}

// heldTooLong says who does not go on.
func heldTooLong(path string, busy error) error {
	who := place.Holder(path)
	if who == "" {
		who = "another process"
	}
	return hint.With(fmt.Errorf("%s holds %s and has written nothing for %v: %w", who, path+".partial", patience, busy),
		"end it, or have it go on if it is stopped (kill -CONT); nothing of its file is lost")
}

// syncFolder makes new folders in a folder survive a crash, on systems where a
// folder can be synced. Files sync their own folder, when they get their names.
func syncFolder(path string) {
	if f, err := os.Open(path); err == nil {
		f.Sync() //nolint:errcheck // not every system can
		f.Close()
	}
}
