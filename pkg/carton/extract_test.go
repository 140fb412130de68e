package carton_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/progress"
	"github.com/google/go-cmp/cmp"
)

// files lists what lies in dir, folders apart: "path" or "path -> target".
func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	list := []string{}
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		rel = filepath.ToSlash(rel)
		if e.Type()&fs.ModeSymlink != 0 {
			var target string
			target, err = os.Readlink(p)
			rel += " -> " + filepath.ToSlash(target)
		}
		list = append(list, rel)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return list
}

func TestExtractGivesACarton(t *testing.T) {
	bundled := []string{"model/config.json", "model/.hidden/a=b", "misc/z"}
	for name, c := range map[string]struct {
		opts carton.ExtractOptions
		src  *cartontest.Source
	}{
		"default":             {carton.ExtractOptions{}, cartontest.New(planFiles(), planLinks())},
		"one at a time":       {carton.ExtractOptions{Concurrency: 1}, cartontest.New(planFiles(), planLinks())},
		"from bundles":        {carton.ExtractOptions{}, cartontest.New(planFiles(), planLinks(), cartontest.WithBundle(1, bundled...))},
		"everything included": {carton.ExtractOptions{Include: []string{"*"}}, cartontest.New(planFiles(), planLinks())},
		"sizes not known":     {carton.ExtractOptions{}, cartontest.New(planFiles(), planLinks(), cartontest.WithUnknownSize("model/config.json", "model/weights.bin"))},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			dir := filepath.Join(parent, "m")
			if err := carton.Extract(t.Context(), dir, c.src, c.opts); err != nil {
				t.Fatal(err)
			}
			want := []string{"MANIFEST", "carton.toml", "model/.hidden/to -> ../l", "model/l -> config.json"}
			for p, b := range planFiles() {
				want = append(want, p)
				if got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(p))); err != nil || !bytes.Equal(got, b) {
					t.Errorf("%s: got %d bytes, %v, want %d", p, len(got), err, len(b))
				}
			}
			slices.Sort(want)
			if diff := cmp.Diff(want, filesIn(t, dir)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			if entries, _ := os.ReadDir(parent); len(entries) != 1 {
				t.Errorf("left behind: %v", entries)
			}
			if got := c.src.Unclosed(); got != 0 {
				t.Errorf("%d readers were not closed", got)
			}
			// The folder is the same carton, of which the same zip can be made.
			back, err := carton.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer back.Close()
			name := filepath.Join(parent, "back.carton")
			if err := carton.Assemble(t.Context(), name, back, carton.AssembleOptions{}); err != nil {
				t.Fatal(err)
			}
			fresh := cartontest.New(planFiles(), planLinks())
			if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, zipOfPlan(t, fresh, planned(t, fresh))) {
				t.Errorf("packed again it is another carton (%v)", err)
			}
		})
	}
}

func TestExtractChooses(t *testing.T) {
	files := map[string][]byte{}
	for _, p := range []string{
		"model/config.json", "model/a/config.json", "model/a/b/w.bin", "model/w.bin", "model/[x]", "misc/config.json", "misc/d/pic.png",
	} {
		files[p] = []byte(p)
	}
	links := map[string]string{"model/link": "a/b/w.bin", "model/a/link2": "../link"}
	for _, c := range []struct {
		opts carton.ExtractOptions
		want string
	}{
		{carton.ExtractOptions{Include: []string{"*.json"}}, "misc/config.json model/a/config.json model/config.json"},
		{carton.ExtractOptions{Include: []string{"model/*.json"}}, "model/config.json"},
		{carton.ExtractOptions{Include: []string{"model/**/config.json"}}, "model/a/config.json model/config.json"},
		{carton.ExtractOptions{Include: []string{"**/*.bin"}}, "model/a/b/w.bin model/w.bin"},
		{carton.ExtractOptions{Include: []string{"misc/"}}, "misc/config.json misc/d/pic.png"},
		{carton.ExtractOptions{Include: []string{"misc/**"}}, "misc/config.json misc/d/pic.png"},
		{carton.ExtractOptions{Include: []string{"/carton.toml"}}, "carton.toml"},
		{carton.ExtractOptions{Include: []string{"/config.json", "*.png"}}, "misc/d/pic.png"},
		{carton.ExtractOptions{Include: []string{`model/\[x\]`}}, "model/[x]"},
		{carton.ExtractOptions{Include: []string{"misc/"}, Exclude: []string{"*.json"}}, "misc/d/pic.png"},
		{carton.ExtractOptions{Exclude: []string{"model/", "misc/**"}}, "carton.toml"},
		{carton.ExtractOptions{Folder: "misc"}, "config.json d/pic.png"},
		{carton.ExtractOptions{Folder: "/misc/d/"}, "pic.png"},
		{carton.ExtractOptions{Folder: "misc", Include: []string{"misc/*"}}, "config.json"},
		{carton.ExtractOptions{Folder: "model", Exclude: []string{"*.json"}}, "[x] a/b/w.bin a/link2 -> ../link link -> a/b/w.bin w.bin"},
		// Links to what is not there become files.
		{carton.ExtractOptions{Include: []string{"link*"}}, "model/a/link2 -> ../link model/link"},
		{carton.ExtractOptions{Folder: "model/a"}, "b/w.bin config.json link2"},
	} {
		t.Run(fmt.Sprintf("%+v", c.opts), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "m")
			if err := carton.Extract(t.Context(), dir, cartontest.New(files, links), c.opts); err != nil {
				t.Fatal(err)
			}
			got := filesIn(t, dir)
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("got  %s\nwant %s", s, c.want)
			}
			for _, p := range got {
				name, _, _ := strings.Cut(p, " -> ")
				b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
				if want := path.Base(name); err != nil || len(b) == 0 || !strings.HasPrefix(want, "link") && want != "carton.toml" && path.Base(string(b)) != want {
					t.Errorf("%s: got %q, %v", name, b, err)
				}
				if strings.HasPrefix(path.Base(name), "link") && string(b) != "model/a/b/w.bin" {
					t.Errorf("%s: got %q, want the content of its final target", name, b)
				}
			}
		})
	}
}

func TestExtractRefusesWhatMatchesNothing(t *testing.T) {
	src := cartontest.New(map[string][]byte{"model/a": nil}, nil)
	for _, c := range []struct {
		opts carton.ExtractOptions
		want error
	}{
		{carton.ExtractOptions{Include: []string{"*.safetensorz"}}, fs.ErrNotExist},
		{carton.ExtractOptions{Exclude: []string{"*"}}, fs.ErrNotExist},
		{carton.ExtractOptions{Folder: "mode"}, fs.ErrNotExist},
		{carton.ExtractOptions{Folder: "carton.toml"}, fs.ErrNotExist},
		{carton.ExtractOptions{Include: []string{"[a"}}, path.ErrBadPattern},
		{carton.ExtractOptions{Exclude: []string{"model/**/[a"}}, path.ErrBadPattern},
		{carton.ExtractOptions{Exclude: []string{""}}, path.ErrBadPattern},
		{carton.ExtractOptions{Include: []string{"/"}}, path.ErrBadPattern},
	} {
		parent := t.TempDir()
		err := carton.Extract(t.Context(), filepath.Join(parent, "m"), src, c.opts)
		if !errors.Is(err, c.want) {
			t.Errorf("%+v: got %v, want %v", c.opts, err, c.want)
		}
		onlyFile(t, parent, "")
	}
}

func TestExtractBehindAFailure(t *testing.T) {
	broken := errors.New("broken")
	files := map[string][]byte{"model/a/b": bytes.Repeat([]byte("a"), 1<<20), "model/c": []byte("c")}
	for name, c := range map[string]struct {
		hook cartontest.OpenHook
		want error
	}{
		"the source breaks": {func(_ string, _ int, r io.Reader) (io.Reader, error) {
			return cartontest.FailAfter(r, 300_000, broken), nil
		}, broken},
		"wrong content": {func(p string, _ int, r io.Reader) (io.Reader, error) {
			if p == "model/c" {
				return strings.NewReader("d"), nil
			}
			return r, nil
		}, carton.ErrChecksum},
	} {
		src := cartontest.New(files, nil, cartontest.WithOpen(c.hook))
		parent := t.TempDir()
		dir := filepath.Join(parent, "m")
		if err := carton.Extract(t.Context(), dir, src, carton.ExtractOptions{}); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
		onlyFile(t, parent, "")

		old := cartontest.New(map[string][]byte{"model/old": []byte("old")}, nil)
		if err := carton.Extract(t.Context(), dir, old, carton.ExtractOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := carton.Extract(t.Context(), dir, src, carton.ExtractOptions{Replace: true}); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
		if diff := cmp.Diff([]string{"m/MANIFEST", "m/carton.toml", "m/model/old"}, filesIn(t, parent)); diff != "" {
			t.Errorf("%s: the old folder (-want +got):\n%s", name, diff)
		}
	}
}

func TestExtractTriesAgain(t *testing.T) {
	src := cartontest.New(map[string][]byte{"model/a": []byte("right")}, nil, cartontest.WithUnknownSize("model/a"),
		cartontest.WithOpen(func(p string, before int, r io.Reader) (io.Reader, error) {
			if p == "model/a" && before == 0 {
				// Longer than what is buffered, so that it gets into the file.
				return cartontest.FailAfter(bytes.NewReader(make([]byte, 1<<20)), 1<<20, &cartontest.Temporary{Text: "not now"}), nil
			}
			return r, nil
		}))
	dir := filepath.Join(t.TempDir(), "m")
	if err := carton.Extract(t.Context(), dir, src, carton.ExtractOptions{}); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "model", "a")); err != nil || string(b) != "right" {
		t.Errorf("got %d bytes %.20q, %v, want right", len(b), b, err)
	}
}

func TestExtractReplacesOnlyWhenToldTo(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "m")
	src := cartontest.New(map[string][]byte{"model/a": []byte("1")}, nil)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := carton.Extract(t.Context(), dir, src, carton.ExtractOptions{}); err != nil {
		t.Fatalf("an empty folder: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mine"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := carton.Extract(t.Context(), dir, src, carton.ExtractOptions{})
	if !errors.Is(err, carton.ErrExist) || len(hint.Of(err)) == 0 {
		t.Errorf("got %v, want ErrExist with a hint", err)
	}
	if diff := cmp.Diff([]string{"m/MANIFEST", "m/carton.toml", "m/mine", "m/model/a"}, filesIn(t, parent)); diff != "" {
		t.Error(diff)
	}
	err = carton.Extract(t.Context(), dir, src, carton.ExtractOptions{Replace: true})
	if !errors.Is(err, carton.ErrExist) || !strings.Contains(err.Error(), ": mine") || len(hint.Of(err)) == 0 {
		t.Errorf("got %v, want ErrExist that names the file, with a hint", err)
	}
	if err := os.Remove(filepath.Join(dir, "mine")); err != nil {
		t.Fatal(err)
	}
	src = cartontest.New(map[string][]byte{"model/b": []byte("2")}, nil)
	if err := carton.Extract(t.Context(), dir, src, carton.ExtractOptions{Replace: true}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"m/MANIFEST", "m/carton.toml", "m/model/b"}, filesIn(t, parent)); diff != "" {
		t.Error(diff)
	}
}

// --force over a folder of somebody's files deleted all of them once.
func TestExtractReplacesOnlyWhatAPullHasPutThere(t *testing.T) {
	src := cartontest.New(map[string][]byte{"model/a": []byte("1"), "model/sub/b": []byte("2")}, nil)
	choice := carton.ExtractOptions{Replace: true, Folder: "model"}
	for name, c := range map[string]struct {
		files map[string]string // what is there
		opts  carton.ExtractOptions
		ok    bool
	}{
		"loose files of the carton's names": {map[string]string{"carton.toml": "mine", "model/a": "mine"}, carton.ExtractOptions{}, false},
		"a MANIFEST of somebody else's":     {map[string]string{"MANIFEST": "Manifest-Version: 1.0\n", "A.class": "mine"}, carton.ExtractOptions{}, false},
		"a choice, of the same names":       {map[string]string{"a": "old", "sub/b": "old"}, choice, true},
		"a choice, and a file more":         {map[string]string{"a": "old", "sub/mine": "mine"}, choice, false},
		"a choice, and a folder more":       {map[string]string{"a": "old", ".git/config": "mine"}, choice, false},
		"a choice, and a folder for a file": {map[string]string{"a/mine": "mine"}, choice, false},
		"a choice, and a file for a folder": {map[string]string{"sub": "mine"}, choice, false},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			dir := filepath.Join(parent, "d")
			for p, text := range c.files {
				p = filepath.Join(dir, filepath.FromSlash(p))
				if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			before := filesIn(t, parent)
			c.opts.Replace = true
			check := carton.CheckReplace(t.Context(), dir, src, c.opts)
			err := carton.Extract(t.Context(), dir, src, c.opts)
			if c.ok {
				if err != nil || check != nil {
					t.Errorf("got %v and %v, want that it is replaced", check, err)
				}
				return
			}
			if !errors.Is(err, carton.ErrExist) || !errors.Is(check, carton.ErrExist) || len(hint.Of(err)) == 0 {
				t.Errorf("got %v and %v, want ErrExist with a hint", check, err)
			}
			if diff := cmp.Diff(before, filesIn(t, parent)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestExtractStopsWhenToldTo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	src := cartontest.New(map[string][]byte{"model/a": make([]byte, 4<<20)}, nil)
	parent := t.TempDir()
	err := carton.Extract(ctx, filepath.Join(parent, "m"), src, carton.ExtractOptions{Progress: func(e progress.Event) {
		if e.State == progress.Moving {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	onlyFile(t, parent, "")
}

func TestExtractManyFiles(t *testing.T) {
	files := map[string][]byte{}
	for i := range 300 {
		files[fmt.Sprintf("model/%d/%d/f%d", i%10, i%100, i)] = []byte(fmt.Sprint(i))
	}
	dir := filepath.Join(t.TempDir(), "m")
	if err := carton.Extract(t.Context(), dir, cartontest.New(files, nil), carton.ExtractOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := len(filesIn(t, dir)); got != 302 {
		t.Errorf("got %d files, want 302", got)
	}
}
