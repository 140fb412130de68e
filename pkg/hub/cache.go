package hub

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/hubname"
	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/internal/localfile"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// cacheFolder is where the hub's own tools keep what they fetch.
func cacheFolder() string {
	if name := cmp.Or(os.Getenv("HF_HUB_CACHE"), os.Getenv("HUGGINGFACE_HUB_CACHE")); name != "" {
		return localfile.ExpandHome(name)
	}
	return filepath.Join(home(), "hub")
}

// cachedAs is the folder of a repository in a cache.
func cachedAs(cache, repository string) string {
	return filepath.Join(cache, "models--"+strings.ReplaceAll(repository, "/", "--"))
}

// Cached returns the folder of a repository in the Cache, or that of the snapshot in it
// that a revision stands for there, which pack.Open packs. What is not there is an error
// wrapping fs.ErrNotExist. Nothing is asked.
func (o Options) Cached(repository, revision string) (string, error) {
	if err := hubname.CheckRepository(repository); err != nil {
		return "", err
	}
	dir := cachedAs(o.Cache, repository)
	if !isDir(dir) {
		return "", errNotCached("the cache %s holds nothing of the repository", o.Cache)
	}
	if revision == "" {
		return dir, nil
	}
	if err := hubname.CheckRevision(revision); err != nil {
		return "", err
	}
	commit := revision
	if !hubname.IsCommit(commit) {
		raw, err := localfile.Read(filepath.Join(dir, "refs", filepath.FromSlash(revision)), 1024)
		if err != nil {
			return "", errNotCached("the cache %s does not know the revision %s", o.Cache, revision)
		}
		commit = strings.TrimSpace(string(raw))
	}
	snapshot := filepath.Join(dir, "snapshots", commit)
	if !hubname.IsCommit(commit) || !isDir(snapshot) {
		return "", errNotCached("the cache %s holds nothing of the commit %s", o.Cache, errtext.Short(commit))
	}
	return snapshot, nil
}

func errNotCached(format string, args ...any) error {
	err := errtext.WithKind(fmt.Errorf(format, args...), fs.ErrNotExist)
	return hint.With(err,
		"HF_HUB_OFFLINE forbids asking the hub: unset it, or fetch the repository with hf download first")
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// openCached opens n bytes from off of a large file that the hub's tools have fetched
// already, nil where there is none of its name and size.
func (f *file) openCached(off, n int64) io.ReadCloser {
	if f.hash == "" || f.snapshot.cache == "" {
		return nil
	}
	r, err := localfile.Open(filepath.Join(f.snapshot.cache, "blobs", f.hash))
	if err != nil {
		return nil
	}
	if info, err := r.Stat(); err != nil || info.Size() != f.size {
		r.Close()
		return nil
	}
	return iox.ReadCloser{Reader: io.NewSectionReader(r, off, n), Closer: r}
}

// InCache returns how many of the files are read from [Options] Cache, and how many
// bytes they have.
func (s *Snapshot) InCache() (files int, bytes int64) {
	for _, f := range s.files {
		if r := f.openCached(0, 0); r != nil {
			r.Close()
			files, bytes = files+1, bytes+f.size
		}
	}
	return files, bytes
}
