package carton

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"sync"

	"github.com/carton-oci/carton-oci/internal/download"
	"github.com/carton-oci/carton-oci/internal/localfile"
	"github.com/carton-oci/carton-oci/internal/place"
)

// CompareFolder says in what the folder dir differs from what Extract of the same
// source and options would make: "" for nothing, after every file of it was read and
// had the hash that the source's MANIFEST lists. An error is one of reading.
func CompareFolder(ctx context.Context, dir string, src Source, opts ExtractOptions) (string, error) {
	chosen, err := chooseOf(ctx, src, opts)
	if err != nil {
		return "", err
	}
	root, err := localfile.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	c := &comparison{
		transfer: transfer{src: src, concurrency: opts.Concurrency, progress: opts.Progress},
		root:     root, choice: chosen,
	}
	if what, err := c.names(dir); what != "" || err != nil {
		return what, err
	}
	if c.whole {
		raw, err := readOwnFile(localfile.FS(root), ManifestName, MaxManifestBytes)
		if err != nil || !bytes.Equal(raw, src.Manifest().Bytes()) {
			return "has another MANIFEST", nil
		}
	}
	return c.contents(ctx)
}

// comparison is a folder that is being read.
type comparison struct {
	transfer
	choice
	root *os.Root

	mu   sync.Mutex
	what string // the first difference
}

// offset, create and done make c the target of files that are read and kept nowhere.
func (c *comparison) offset(Member) int64 { return 0 }

func (c *comparison) create(Member) (download.File, error)            { return nowhere{}, nil }
func (c *comparison) done(Member, download.File, int64, uint32) error { return nil }
func (c *comparison) to(m Member) string                              { return m.Path[len(c.prefix):] }

// names looks for what should not be there.
func (c *comparison) names(dir string) (string, error) {
	names := map[string]bool{} // of files, true; of folders, false
	if c.whole {
		names[ManifestName] = true
	}
	for _, m := range c.members {
		names[c.to(m)] = true
		for d := path.Dir(c.to(m)); d != "."; d = path.Dir(d) {
			names[d] = false
		}
	}
	stranger, err := place.Stranger(dir, func(p string, folder bool) bool {
		file, ok := names[p]
		return ok && file != folder
	})
	if err != nil || stranger == "" {
		return "", err
	}
	return fmt.Sprintf("holds %s, which is not of this choice", quotePath(stranger)), nil
}

// contents reads what should be there, until something differs.
func (c *comparison) contents(ctx context.Context) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var files []Member
	for _, m := range c.members {
		if m.Target == "" {
			m.Bundle, m.Ranged = 0, false
			files = append(files, m)
			continue
		}
		if to, err := c.root.Readlink(filepath.FromSlash(c.to(m))); err != nil || filepath.ToSlash(to) != m.Target {
			return fmt.Sprintf("has another %s", quotePath(c.to(m))), nil
		}
	}
	job := c.job(files, c)
	job.Whole = func(_ context.Context, i int) (io.ReadCloser, error) {
		f, err := localfile.OpenItself(c.root, filepath.FromSlash(c.to(files[i])))
		if err != nil {
			return nil, err
		}
		return verify(f, c.to(files[i]), files[i].Hash, files[i].Size, 0), nil
	}
	job.Failed = func(_ int, _ int64, err error) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.what == "" {
			c.what = fmt.Sprintf("differs: %v", err)
		}
		return errDiffers
	}
	_, err := download.Run(ctx, job, c.options())
	if c.what != "" {
		return c.what, nil
	}
	return "", err
}

// errDiffers ends the reading of a folder.
var errDiffers = errors.New("differs")
