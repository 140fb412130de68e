package pack_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/pack"
	"github.com/google/go-cmp/cmp"
)

// TestTheListIsDocumented: docs/packing.md has every line of it, in its order.
func TestTheListIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/packing.md")
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for line := range strings.Lines(string(doc)) {
		if cells := strings.Split(line, " | "); len(cells) == 2 && strings.HasPrefix(line, "| `") && strings.HasSuffix(cells[0], "`") {
			got = append(got, strings.TrimSuffix(line, "\n"))
		}
	}
	for _, x := range pack.LeftOutByDefault {
		want = append(want, "| `"+x.Pattern+"` | "+x.What+" |")
	}
	got = slices.DeleteFunc(got, func(line string) bool { return !slices.Contains(want, line) })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsLeftOutAndBroughtBack(t *testing.T) {
	files := map[string]string{
		"a.bin": "a", "carton.lock": "l", "x.lock": "l", "lib/x.pyc": "p", "lib/__pycache__/x.pyc": "c", ".git/HEAD": "h", "sub/.git": "w",
		".cache/huggingface/hub/models--o--n/blobs/a": "b", ".cache/huggingface/download/a.metadata": "m", ".cache/other/f": "f",
		"logs/1.log": "1", "logs/2.log": "2", "logs/keep.txt": "k", "runs/deep/1.log": "r", "part.incomplete": "h",
	}
	lock := []string{"model/carton.lock", "model/lib/x.pyc"}
	always := []string{
		"carton.toml", "model/.cache/huggingface/hub/models--o--n/blobs/a", "model/.cache/other/f", "model/a.bin", "model/x.lock",
		"tensor_data/index.toml",
	}
	left := []string{".cache/huggingface/download", ".git", "lib/__pycache__", "part.incomplete", "sub/.git"}
	logs := []string{"model/logs/1.log", "model/logs/2.log", "model/logs/keep.txt", "model/runs/deep/1.log"}
	for name, c := range map[string]struct {
		ignore        string
		opts          pack.Options
		members, left []string
	}{
		"by default":       {"", pack.Options{}, logs, nil},
		"--exclude name":   {"", pack.Options{Exclude: []string{"*.log"}}, logs[2:3], []string{"logs/1.log", "logs/2.log", "runs/deep/1.log"}},
		"--exclude folder": {"", pack.Options{Exclude: []string{"logs", "/runs/"}}, nil, []string{"logs", "runs"}},
		"--include":        {"", pack.Options{Include: []string{"lib/__pycache__"}}, append([]string{"model/lib/__pycache__/x.pyc"}, logs...), []string{"-lib/__pycache__"}},
		"--include below a folder": {
			"",
			pack.Options{Exclude: []string{"logs"}, Include: []string{"keep.txt"}},
			logs[2:],
			[]string{"logs/1.log", "logs/2.log"},
		},
		".cartonignore": {
			"# a comment\n\n*.log\r\n!logs/2.log  \n",
			pack.Options{},
			logs[1:3],
			[]string{".cartonignore", "logs/1.log", "runs/deep/1.log"},
		},
		".cartonignore and flags": {
			"*.log\n",
			pack.Options{Include: []string{"runs"}},
			logs[2:],
			[]string{".cartonignore", "logs/1.log", "logs/2.log"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tree(t, files)
			if c.ignore != "" {
				write(t, dir, map[string]string{pack.IgnoreFile: c.ignore})
			}
			c.opts.Runner.Name = "noop"
			got := open(t, c.opts, dir)
			members := slices.Concat(always, lock, c.members)
			slices.Sort(members)
			wantListing(t, got, members...)
			wantLeft := slices.Concat(left, c.left)
			if i := slices.Index(wantLeft, "-lib/__pycache__"); i >= 0 {
				wantLeft = slices.DeleteFunc(wantLeft, func(s string) bool { return strings.HasSuffix(s, "lib/__pycache__") })
			}
			slices.Sort(wantLeft)
			sorted := slices.Sorted(slices.Values(got.LeftOut))
			if diff := cmp.Diff(wantLeft, sorted); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBrokenIgnoreFiles(t *testing.T) {
	for text, want := range map[string]string{
		"[a\n": "[a", "!\n": "pattern", "/\n": "pattern", strings.Repeat("#", pack.MaxIgnoreBytes+1): "larger than",
	} {
		_, err := pack.Open(t.Context(), []string{tree(t, map[string]string{"a": "x", pack.IgnoreFile: text})}, noop)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), pack.IgnoreFile) {
			t.Errorf("%.20q: got %v", text, err)
		}
	}
	refused(t, pack.Options{Info: carton.Info{Runner: carton.Runner{Name: "noop"}}, Exclude: []string{"[a"}}, pack.ErrOptions, "[a", tree(t, map[string]string{"a": "x"}))
	// What is left out may be what can't be packed.
	dir := tree(t, map[string]string{"a": "x", "b/.env": "secret", "out": "-> ../../x"})
	wantListing(t, open(t, pack.Options{Info: carton.Info{Runner: carton.Runner{Name: "noop"}}, Exclude: []string{"b", "out"}}, dir), "carton.toml", "model/a", "tensor_data/index.toml")
}

// A carton whose files were changed gets a new MANIFEST. What its old one lists
// stays, whatever it is called.
func TestUpdate(t *testing.T) {
	const toml = "# mine\nspec_version = 1\nrunner = { runner_name = 'noop', required_framework_version = '*', runner_compat_version = 1 }\n"
	dir := tree(t, map[string]string{
		"carton.toml": toml, "model/a": "changed", "model/.gitignore": "listed", "model/new": "n", "model/.DS_Store": "left out",
		"tensor_data/index.toml": "tensor = []\n",
		"MANIFEST":               "carton.toml=" + strings.Repeat("0", 64) + "\nmodel/.gitignore=" + strings.Repeat("0", 64) + "\nmodel/gone=" + strings.Repeat("0", 64) + "\n",
	})
	refused(t, pack.Options{}, pack.ErrCarton, "MANIFEST", dir)
	testenv.Symlink(t, "model", filepath.Join(dir, "models")) // a mounted image has it, and MANIFEST doesn't
	c := open(t, pack.Options{Update: true}, dir)
	wantListing(t, c, "carton.toml", "model/.gitignore", "model/a", "model/new", "tensor_data/index.toml")
	if read(t, c, "carton.toml") != toml || read(t, c, "model/a") != "changed" {
		t.Error("got other content")
	}
	want := "the folder lacks 1 of the 3 files that its MANIFEST lists, and so will the carton: model/gone"
	if !slices.Contains(c.Warnings, want) {
		t.Errorf("got the warnings %q, want %q", c.Warnings, want)
	}
	refused(t, pack.Options{Info: carton.Info{Runner: carton.Runner{Name: "noop"}}, Update: true}, pack.ErrOptions, "kept as it is", dir)
	write(t, dir, map[string]string{"LINKS": "version = 1\n"})
	refused(t, pack.Options{Update: true}, carton.ErrFormat, "LINKS", dir)
	refused(t, pack.Options{Update: true}, pack.ErrOptions, "no carton", tree(t, map[string]string{"MANIFEST": "x"}))
}

// carton.toml of a folder without the folders of a carton is the carton's.
func TestACartonTomlBesideFilesIsTheCartons(t *testing.T) {
	const toml = "spec_version = 1\nrunner = { runner_name = 'noop', required_framework_version = '*', runner_compat_version = 1 }\n"
	c := open(t, pack.Options{}, tree(t, map[string]string{"carton.toml": toml, "a.bin": "x"}))
	wantListing(t, c, "carton.toml", "model/a.bin", "tensor_data/index.toml")
	if read(t, c, "carton.toml") != toml {
		t.Error("got another carton.toml")
	}
}
