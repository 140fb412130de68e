// Reader prints what it sees of a folder, as a pod would: a line for each file,
// folder and symlink, in JSON. What it may not read is an error.
//
//	reader DIR
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// entry is a line.
type entry struct {
	Path     string `json:"path"` // below the folder
	Mode     string `json:"mode"`
	UID, GID uint32
	Content  string `json:"content"` // sha256 of a file, target of a symlink
}

func main() {
	if err := read(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "reader:", err)
		os.Exit(1)
	}
}

func read(root string) error {
	out := json.NewEncoder(os.Stdout)
	return filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == root {
			return err
		}
		e, err := look(name, d)
		if err != nil {
			return err
		}
		if e.Path, err = filepath.Rel(root, name); err != nil {
			return err
		}
		return out.Encode(e)
	})
}

func look(name string, d fs.DirEntry) (entry, error) {
	info, err := d.Info()
	if err != nil {
		return entry{}, err
	}
	e := entry{Mode: info.Mode().String()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		e.UID, e.GID = stat.Uid, stat.Gid
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		e.Content, err = os.Readlink(name)
	case info.Mode().IsRegular():
		e.Content, err = sum(name)
	}
	return e, err
}

func sum(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
