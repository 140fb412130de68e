package pack_test

import (
	"crypto/sha1" //nolint:gosec // it is what git calls files by
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/pack"
	"github.com/carton-oci/carton-oci/pkg/progress"
)

// hubRepository is a repository as hubs have them: files with awkward names, in
// folders, and one that git-lfs keeps.
var hubRepository = map[string]string{
	".gitattributes":                  "*.safetensors filter=lfs diff=lfs merge=lfs -text\n",
	"README.md":                       "---\nlicense: mit\n---\n# A model\n",
	"config.json":                     "{}",
	"model.safetensors":               "\x08\x00\x00\x00\x00\x00\x00\x00{}      ",
	"onnx/model.onnx":                 "onnx",
	"additional/deep/chat.jinja":      "{{ messages }}",
	"poetry.lock":                     "kept",
	"tokenizer/tokenizer.model":       "tokens",
	"tokenizer/.hidden/vocabulary.md": "words",
}

const commit = "0123456789abcdef0123456789abcdef01234567"

func etag(name, content string) string {
	if strings.HasSuffix(name, ".safetensors") || strings.HasSuffix(name, ".onnx") {
		sum := sha256.Sum256([]byte(content))
		return hex.EncodeToString(sum[:])
	}
	sum := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content)) //nolint:gosec // as git has it
	return hex.EncodeToString(sum[:])
}

// hubCache lays a repository out as huggingface_hub 1.28 does in its cache, and
// returns the folder of the repository.
func hubCache(t *testing.T, repository map[string]string) string {
	t.Helper()
	files := map[string]string{
		"refs/main": commit, "trees/" + commit + ".json": treeOf(repository),
		"blobs/" + strings.Repeat("e", 64) + ".incomplete": "half", ".no_exist/" + commit + "/adapter_config.json": "",
	}
	for name, content := range repository {
		tag := etag(name, content)
		files["blobs/"+tag] = content
		files["snapshots/"+commit+"/"+name] = "-> " + strings.Repeat("../", 2+strings.Count(name, "/")) + "blobs/" + tag
	}
	cache := filepath.Join(t.TempDir(), "hub", "models--org--tiny")
	write(t, cache, files)
	return cache
}

func treeOf(repository map[string]string) string {
	var items []string
	for name, content := range repository {
		items = append(items, fmt.Sprintf(`  %q: {"size": %d, "blob_id": %q}`, name, len(content), etag(name, content)))
	}
	return "{\n \"format_version\": 1,\n \"files\": {\n" + strings.Join(items, ",\n") + "\n }\n}"
}

// localDir lays a repository out as `hf download --local-dir` does.
func localDir(t *testing.T, repository map[string]string) string {
	t.Helper()
	const own = ".cache/huggingface/"
	files := maps.Clone(repository)
	maps.Copy(files, map[string]string{
		own + ".gitignore": "*", own + ".gitignore.lock": "", own + "CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n",
		own + "trees/" + commit + ".json": treeOf(repository), own + "download/x.AbC=." + strings.Repeat("a", 64) + ".incomplete": "half",
		".DS_Store": "mac", "__pycache__/a.cpython-311.pyc": "cache", ".ipynb_checkpoints/n.ipynb": "{}",
	})
	for name, content := range repository {
		files[own+"download/"+name+".metadata"] = commit + "\n" + etag(name, content) + "\n1712656091.123\n"
		files[own+"download/"+strings.TrimSuffix(name, path.Ext(name))+".lock"] = ""
	}
	return tree(t, files)
}

// gitClone clones a repository.
func gitClone(t *testing.T, repository map[string]string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		testenv.NotChecked(t, "there is no git")
	}
	files := maps.Clone(repository)
	delete(files, ".gitattributes") // its filter is git-lfs, which would be asked
	dir := tree(t, files)
	clone := filepath.Join(t.TempDir(), "clone")
	for _, args := range [][]string{
		{"-C", dir, "init", "-q"},
		{"-C", dir, "add", "-A"},
		{"-C", dir, "-c", "user.name=n", "-c", "user.email=e@example.com", "commit", "-q", "-m", "m"},
		{"clone", "-q", dir, clone},
	} {
		cmd := exec.Command("git", append([]string{"-c", "core.autocrlf=false"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	write(t, clone, map[string]string{".gitattributes": repository[".gitattributes"]})
	return clone
}

func TestOneRepositoryHasOneModelHash(t *testing.T) {
	cache := hubCache(t, hubRepository)
	want := open(t, noop, tree(t, hubRepository)).Manifest().ModelHash()
	for name, dir := range map[string]string{
		"snapshot": filepath.Join(cache, "snapshots", commit), "cache": cache,
		"local dir": localDir(t, hubRepository), "clone": gitClone(t, hubRepository),
	} {
		c := open(t, noop, dir)
		if got := c.Manifest().ModelHash(); got != want {
			t.Errorf("%s: got another model hash, with\n%s", name, strings.Join(listing(t, c), "\n"))
		}
		if read(t, c, "model/onnx/model.onnx") != "onnx" || len(c.Warnings) > 0 {
			t.Errorf("%s: got the warnings %q", name, c.Warnings)
		}
		if snapshot := name == "snapshot" || name == "cache"; snapshot != (c.Snapshot == commit) {
			t.Errorf("%s: got the snapshot %q", name, c.Snapshot)
		}
		report, err := carton.Verify(t.Context(), c, carton.VerifyOptions{})
		if err != nil || !report.OK() {
			t.Errorf("%s: got %+v, %v", name, report, err)
		}
	}
	// A folder of a snapshot is no more than that folder.
	c := open(t, noop, filepath.Join(cache, "snapshots", commit, "tokenizer"))
	wantListing(t, c, "carton.toml", "model/.hidden/vocabulary.md", "model/tokenizer.model", "tensor_data/index.toml")
}

func TestSnapshotThatIsNotWhole(t *testing.T) {
	cache := hubCache(t, hubRepository)
	for _, name := range []string{"onnx/model.onnx", ".gitattributes"} { // which is left out anyway
		if err := os.Remove(filepath.Join(cache, "snapshots", commit, name)); err != nil {
			t.Fatal(err)
		}
	}
	wantWarnings(t, open(t, noop, cache), "lacks 1 of the 8 files that the repository has at this commit: onnx/model.onnx")
	wantWarnings(t, open(t, noop, filepath.Join(cache, "snapshots", commit, "tokenizer")))
	wantWarnings(t, open(t, pack.Options{Info: carton.Info{Runner: carton.Runner{Name: "noop"}}, Exclude: []string{"onnx"}}, cache))
	refused(t, pack.Options{Info: carton.Info{Runner: carton.Runner{Name: "noop"}}, Strict: true}, carton.ErrFormat, "lacks 1", cache)
	// What nobody can read tells nothing.
	write(t, cache, map[string]string{"trees/" + commit + ".json": `{"format_version": 2}`})
	wantWarnings(t, open(t, noop, cache))
}

func TestWhichSnapshot(t *testing.T) {
	cache := hubCache(t, hubRepository)
	other := strings.Repeat("f", 40)
	write(t, cache, map[string]string{"snapshots/" + other + "/a": "other"})
	if c := open(t, noop, cache); c.Snapshot != commit {
		t.Errorf("got %s, want main's", c.Snapshot)
	}
	if err := os.Remove(filepath.Join(cache, "refs", "main")); err != nil {
		t.Fatal(err)
	}
	refused(t, noop, carton.ErrFormat, "2 snapshots, of which none is the branch main", cache)
	if err := os.RemoveAll(filepath.Join(cache, "snapshots", commit)); err != nil {
		t.Fatal(err)
	}
	if c := open(t, noop, cache); c.Snapshot != other || read(t, c, "model/a") != "other" {
		t.Errorf("got %s, want the only one", c.Snapshot)
	}
	if name, err := pack.DefaultName(filepath.Join(cache, "snapshots", other)); err != nil || name != "tiny" {
		t.Errorf("got the name %q, %v", name, err)
	}
}

// Only blobs of the same repository are a snapshot's, and only if they are what
// they are called.
func TestSymlinksOfACache(t *testing.T) {
	snap := "snapshots/" + commit + "/"
	for name, c := range map[string]struct {
		files map[string]string
		kind  error
		want  string
	}{
		"another repository": {map[string]string{"../models--org--b/blobs/x": "x", snap + "out": "-> ../../../models--org--b/blobs/x"}, carton.ErrInsecurePath, "out: is a symlink to ../../../models--org--b/blobs/x, outside"},
		"refs":               {map[string]string{snap + "out": "-> ../../refs/main"}, carton.ErrInsecurePath, "out: is a symlink to ../../refs/main, outside"},
		"another snapshot":   {map[string]string{"snapshots/b/x": "x", snap + "out": "-> ../b/x"}, carton.ErrInsecurePath, "outside"},
		"all blobs":          {map[string]string{snap + "out": "-> ../../blobs"}, carton.ErrInsecurePath, "outside"},
		"below blobs":        {map[string]string{"blobs/d/x": "x", snap + "out": "-> ../../blobs/d"}, carton.ErrInsecurePath, "out: is a symlink to the folder ../../blobs/d"},
		"blob that leads out": {
			map[string]string{"../secret": "x", "blobs/s": "-> ../../secret", snap + "out": "-> ../../blobs/s"},
			carton.ErrInsecurePath, "outside",
		},
		"blob that is gone": {map[string]string{snap + "out": "-> ../../blobs/gone"}, carton.ErrInsecurePath, "which is not there"},
	} {
		t.Run(name, func(t *testing.T) {
			cache := hubCache(t, hubRepository)
			write(t, cache, c.files)
			refused(t, noop, c.kind, c.want, cache)
		})
	}
	cache := hubCache(t, hubRepository)
	blob := filepath.Join(cache, "blobs", etag("config.json", "{}"))
	write(t, cache, map[string]string{snap + "absolute.json": "-> " + blob, snap + "chain.json": "-> config.json"})
	c := open(t, noop, cache)
	if read(t, c, "model/absolute.json") != "{}" || read(t, c, "model/chain.json") != "{}" {
		t.Error("got other content")
	}
	// Outside of a cache nothing is different.
	dir := tree(t, map[string]string{"blobs/x": "x", "snapshots/c/out": "-> ../../blobs/x"})
	refused(t, noop, carton.ErrInsecurePath, "outside", filepath.Join(dir, "snapshots", "c"))
}

// A blob that is called by a sha256 is not read to be packed; whoever reads it is
// told when it is another one.
func TestABlobsNameIsBelievedUntilItIsRead(t *testing.T) {
	snap := "snapshots/" + commit + "/"
	cache := hubCache(t, hubRepository)
	hash := strings.Repeat("a", 64)
	write(t, cache, map[string]string{"blobs/" + hash: "x", snap + "out.bin": "-> ../../blobs/" + hash})
	var hashed []string
	opts := noop
	opts.Progress = func(e progress.Event) {
		if e.State == progress.Started {
			hashed = append(hashed, e.Name)
		}
	}
	opts.Concurrency = 1
	c := open(t, opts, cache)
	if slices.Contains(hashed, "model/out.bin") || !slices.Contains(hashed, "model/config.json") {
		t.Errorf("hashed were %q, want what has no sha256 for a name", hashed)
	}
	r, err := c.Open(t.Context(), "model/out.bin")
	if err == nil {
		_, err = io.ReadAll(r)
	}
	if !errors.Is(err, carton.ErrChecksum) {
		t.Errorf("a blob that is not what it is called: got %v, want ErrChecksum", err)
	}
	opts.AllowInvalid = true
	if c := open(t, opts, cache); read(t, c, "model/out.bin") != "x" {
		t.Error("what may be broken is not packed as it is")
	}
}

// What is cut into shards has other hashes than the blobs: those are checked all the
// same.
func TestShardsOfACache(t *testing.T) {
	repository := maps.Clone(hubRepository)
	repository["model.safetensors"] = weights(t, 0, 7)
	cache := hubCache(t, repository)
	opts := noop
	opts.Shard = 3500
	wantWeights(t, open(t, opts, cache), "model/model.safetensors.index.json", 7)
	blob := "blobs/" + etag("model.safetensors", repository["model.safetensors"])
	write(t, cache, map[string]string{blob: strings.Replace(repository["model.safetensors"], "\x03\x03\x03", "\x03\x09\x03", 1)})
	refused(t, opts, carton.ErrChecksum, "is damaged in the cache", cache)
}

func TestSnapshotsThatAreDamaged(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		kind  error
		want  string
	}{
		"cut short":          {map[string]string{"trees/" + commit + ".json": `{"format_version": 1, "files": {"config.json": {"size": 3}}}`}, carton.ErrChecksum, "has 2 bytes in the cache, and 3"},
		"another large file": {map[string]string{"trees/" + commit + ".json": `{"format_version": 1, "files": {"onnx/model.onnx": {"size": 4, "lfs_sha256": "ab"}}}`}, carton.ErrChecksum, "in the list of"},
		"main is elsewhere":  {map[string]string{"refs/main": strings.Repeat("d", 40)}, carton.ErrFormat, "of which it holds nothing"},
		"a blob under way":   {map[string]string{"blobs/x.incomplete": "h", "snapshots/" + commit + "/out": "-> ../../blobs/x"}, carton.ErrInsecurePath, "which is not there"},
	} {
		t.Run(name, func(t *testing.T) {
			cache := hubCache(t, hubRepository)
			write(t, cache, c.files)
			refused(t, noop, c.kind, c.want, cache)
			_, err := pack.Open(t.Context(), []string{cache}, noop)
			if hints := fmt.Sprint(hint.Of(err)); !strings.Contains(hints, "hf download") {
				t.Errorf("got the hints %s", hints)
			}
		})
	}
}

// What an absolute symlink names inside of the folder is inside.
func TestAbsoluteSymlinks(t *testing.T) {
	dir := tree(t, map[string]string{"sub/a": "a", "folder/b": "b"})
	write(t, dir, map[string]string{"other/in": "-> " + filepath.Join(dir, "sub", "a")})
	wantListing(t, open(t, noop, dir), "carton.toml", "model/folder/b", "model/other/in -> ../sub/a", "model/sub/a", "tensor_data/index.toml")
	write(t, dir, map[string]string{"gone": "-> " + filepath.Join(dir, "nowhere")})
	refused(t, noop, carton.ErrInsecurePath, "gone: is a symlink to "+filepath.Join(dir, "nowhere")+", which is not there", dir)
	dir = tree(t, map[string]string{"folder/b": "b"})
	write(t, dir, map[string]string{"l": "-> " + filepath.Join(dir, "folder")})
	refused(t, noop, carton.ErrInsecurePath, "l: is a symlink to the folder", dir)
}
