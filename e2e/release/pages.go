package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
)

// writePages has the program write its man pages and scripts of completion, as it does
// for make man, and reads them as the entries of an archive. They are the same
// for every platform, and dated with the commit.
func (r *release) writePages(ctx context.Context, work string) ([]entry, error) {
	binary, err := r.build(ctx, platform{runtime.GOOS, runtime.GOARCH}, filepath.Join(work, "here"))
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(work, "pages")
	for _, args := range [][]string{
		{"man", filepath.Join(dir, "man", "man1")},
		{"completion", filepath.Join(dir, "completion")},
	} {
		cmd := exec.CommandContext(ctx, binary, append([]string{"__pages"}, args...)...)
		cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+strconv.FormatInt(r.source.time.Unix(), 10))
		if _, err := output(cmd); err != nil {
			return nil, err
		}
	}
	var entries []entry
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		entries = append(entries, entry{name: name, mode: 0o644, content: content})
		return err
	})
	if err == nil && len(entries) == 0 {
		err = fmt.Errorf("%s wrote no pages", binary)
	}
	return entries, err
}
