//go:build unix

package place_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/carton-oci/carton-oci/internal/place"
)

// What a process leaves that is killed at any point behind the rename is gone
// once somebody has found the output complete.
func TestTidyRemovesWhatADeadProcessLeft(t *testing.T) {
	for name, left := range map[string][]string{
		"a file's journal":             {"m.partial.journal=OURS" + half},
		"a file's empty beginning":     {"m.partial=", "m.partial.journal="},
		"a file with an empty journal": {"m.partial=half", "m.partial.journal=OURS"},
		"a folder's journal":           {"d.partial.journal=OURS" + half},
		"a folder's empty journal":     {"d.partial.journal="},
		"a folder that was replaced":   {"d.partial/old=x", "d.partial.journal=OURS"},
		"a folder that was set aside":  {"d.partial.old/old=x", "d.partial.journal=OURS"},
		"nothing":                      nil,
	} {
		t.Run(name, func(t *testing.T) {
			dir := outputs(t, left...)
			place.Tidy(filepath.Join(dir, "m"))
			place.Tidy(filepath.Join(dir, "d"))
			wantTree(t, dir, "d/", "d/x=d", "m=m")
		})
	}
}

// What can be gone on with, what is somebody else's, and what is no plain file
// stays as it is.
func TestTidyLeavesTheRest(t *testing.T) {
	t.Run("half a download", func(t *testing.T) {
		dir := outputs(t, "m.partial=half", "m.partial.journal=OURS"+half, "d.partial/x=half", "d.partial.journal=OURS"+half)
		place.Tidy(filepath.Join(dir, "m"))
		place.Tidy(filepath.Join(dir, "d"))
		wantTree(t, dir, "d.partial.journal=OURS"+half, "d.partial/", "d.partial/x=half", "d/", "d/x=d",
			"m.partial.journal=OURS"+half, "m.partial=half", "m=m")
	})
	t.Run("what a process writes", func(t *testing.T) {
		dir := outputs(t)
		f, err := place.Create(filepath.Join(dir, "m"), place.Options{Replace: true, Resume: true})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Discard()
		d, err := place.CreateFolder(filepath.Join(dir, "d"), place.Options{Replace: true, Resume: true})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Discard()
		place.Tidy(filepath.Join(dir, "m"))
		place.Tidy(filepath.Join(dir, "d"))
		for _, name := range []string{"m.partial", "m.partial.journal", "d.partial", "d.partial.journal"} {
			if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("a journal that is a symlink", func(t *testing.T) {
		dir := outputs(t, "victim=v")
		if err := os.Symlink("victim", filepath.Join(dir, "m.partial.journal")); err != nil {
			t.Fatal(err)
		}
		place.Tidy(filepath.Join(dir, "m"))
		if _, err := os.Lstat(filepath.Join(dir, "m.partial.journal")); err != nil {
			t.Error(err)
		}
	})
	t.Run("what has such a name", func(t *testing.T) {
		left := []string{"m.partial=mine", "m.partial.journal=mine", "d.partial/x=mine", "d.partial.old/x=mine", "d.partial.journal=mine"}
		dir := outputs(t, left...)
		before := tree(t, dir)
		place.Tidy(filepath.Join(dir, "m"))
		place.Tidy(filepath.Join(dir, "d"))
		wantTree(t, dir, before...)
	})
	t.Run("no output", func(t *testing.T) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "m.partial.journal"), "x")
		place.Tidy(filepath.Join(dir, "m"))
		place.Tidy(filepath.Join(dir, "gone", "m"))
		wantTree(t, dir, "m.partial.journal=x")
	})
}

// outputs returns a folder with the outputs m and d, and with what was left
// beside them.
func outputs(t *testing.T, left ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, entry := range append([]string{"m=m", "d/x=d"}, left...) {
		for i := range entry {
			if entry[i] == '=' {
				name := filepath.Join(dir, filepath.FromSlash(entry[:i]))
				if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
					t.Fatal(err)
				}
				write(t, name, strings.ReplaceAll(entry[i+1:], "OURS", journalOf(t, dir)))
				break
			}
		}
	}
	return dir
}

// journalOf is the text of a journal of d that names the folders that are there.
func journalOf(t *testing.T, dir string) string {
	t.Helper()
	text := place.JournalMark
	root, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, base := range []string{"d.partial", "d.partial.old"} {
		if fi, err := os.Stat(filepath.Join(dir, base)); err == nil {
			born, err := place.Born(root, base)
			if err != nil {
				t.Fatal(err)
			}
			text += fmt.Sprintf("inode %d%s\n", fi.Sys().(*syscall.Stat_t).Ino, born)
		}
	}
	return text + strings.Repeat("\n", place.TextBytes-len(text))
}
