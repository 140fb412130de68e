package pack_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/pack"
)

// tree writes files into a folder of the test, and symlinks: those whose content
// begins with "-> ". A name that ends in "/" is an empty folder.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "loose")
	write(t, dir, files)
	return dir
}

func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		parent := filepath.Dir(file)
		if strings.HasSuffix(name, "/") {
			parent = file
		}
		if err := os.MkdirAll(parent, 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			continue
		}
		var err error
		if target, ok := strings.CutPrefix(content, "-> "); ok {
			testenv.Symlink(t, target, file)
		} else {
			err = os.WriteFile(file, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// noop is what storage takes.
var noop = pack.Options{Info: carton.Info{Runner: carton.Runner{Name: "noop"}}}

// open packs a path, and closes the carton with the test.
func open(t testing.TB, opts pack.Options, paths ...string) *pack.Carton {
	t.Helper()
	c, err := pack.Open(t.Context(), paths, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// refused packs a path, and wants an error of a kind that says something.
func refused(t testing.TB, opts pack.Options, kind error, text string, paths ...string) error {
	t.Helper()
	c, err := pack.Open(t.Context(), paths, opts)
	if err == nil {
		c.Close()
	}
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want %v with %q", err, kind, text)
	}
	return err
}

// listing returns a carton's members, a symlink as "path -> target".
func listing(t testing.TB, c carton.Source) []string {
	t.Helper()
	members, err := c.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range members {
		name := m.Path
		if m.Target != "" {
			name += " -> " + m.Target
		}
		names = append(names, name)
	}
	return names
}

func wantListing(t testing.TB, c carton.Source, want ...string) {
	t.Helper()
	if got := listing(t, c); !slices.Equal(got, want) {
		t.Errorf("got the members\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func read(t testing.TB, c carton.Source, name string) string {
	t.Helper()
	r, err := c.Open(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// assemble writes the canonical carton and returns its sha256 and its name.
func assemble(t testing.TB, c *pack.Carton) (hash, name string) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "m.carton")
	if err := carton.Assemble(t.Context(), name, c, carton.AssembleOptions{Thin: c.Thin}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), name
}

// wantWarning wants exactly these warnings, each by a part of its text.
func wantWarnings(t testing.TB, c *pack.Carton, parts ...string) {
	t.Helper()
	ok := len(c.Warnings) == len(parts)
	for i := range parts {
		ok = ok && strings.Contains(c.Warnings[i], parts[i])
	}
	if !ok {
		t.Errorf("got the warnings %q, want %q", c.Warnings, parts)
	}
}
