package e2e

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/containerd"
	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
)

// The promise: what containerd mounts of the image form is the unpacked carton,
// byte for byte. containerd is a real one, on its own root and socket.

// attributes are what a pod sees of one file: type, mode, owner and content.
type attributes struct {
	mode     fs.FileMode
	uid, gid uint32
	content  string // sha256 of a file, target of a symlink
}

func (a attributes) String() string {
	return fmt.Sprintf("%v %d:%d %s", a.mode, a.uid, a.gid, a.content)
}

// mountTree reads all that is in a folder.
func mountTree(t testing.TB, dir string) map[string]attributes {
	t.Helper()
	tree := map[string]attributes{}
	err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		info, err := os.Lstat(name)
		if err != nil {
			return err
		}
		a := attributes{mode: info.Mode()}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			a.uid, a.gid = stat.Uid, stat.Gid
		}
		switch {
		case info.Mode().IsRegular():
			a.content = fileSum(t, name)
		case info.Mode()&fs.ModeSymlink != 0:
			a.content, err = os.Readlink(name)
		}
		path, _ := filepath.Rel(dir, name)
		tree[filepath.ToSlash(path)] = a
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// withModels adds what an image has beside the carton: the symlink models.
func withModels(tree map[string]attributes) map[string]attributes {
	tree["models"] = attributes{mode: fs.ModeSymlink | 0o777, content: "model"}
	return tree
}

// sameTree checks that a mount shows what is unpacked, and nothing else.
func sameTree(t testing.TB, got, want map[string]attributes) {
	t.Helper()
	if len(want) == 0 {
		t.Fatal("nothing is unpacked")
	}
	for path, w := range want {
		if g, ok := got[path]; !ok {
			t.Errorf("%s is not mounted", path)
		} else if g != w {
			t.Errorf("%s: got %v, want %v", path, g, w)
		}
	}
	for path := range maps.Keys(got) {
		if _, ok := want[path]; !ok {
			t.Errorf("%s is mounted, and is not in the unpacked carton", path)
		}
	}
}

func TestContainerdMountsTheUnpackedCarton(t *testing.T) {
	c := containerd.Start(t, containerd.Light)
	s := testregistry.Start(t, testregistry.Options{})
	many, weights := pythonModel(), weighty()
	// A symlink to a weight is a layer of its own in an artifact of raw layers.
	weights.symlinks["model/current.bin"] = "decoder.bin"
	weights.files["model/empty.txt"] = ""
	weights.files["model/"+strings.Repeat("deep/", 150)+strings.Repeat("long", 50)+".json"] = "{}"
	shards := newModel(nil)
	for i := range 300 { // more than an image has layers
		shards.files[fmt.Sprintf("model/shard%03d.safetensors.bin", i)] = random(fmt.Sprint("shard", i), 10<<10)
	}
	zstd := []string{"--bundle-below", "1MiB", "--compress", "zstd"}
	tests := map[string]struct {
		model *model // nil: the one that the reference implementation would write
		flags []string
		later bool // made by carton-oci image, not by the push
	}{
		"a carton of the reference writer": {nil, nil, false},
		"large files":                      {weights, nil, false},
		"cncf":                             {weights, []string{"--media-types", "cncf"}, false},
		"bundles":                          {weights, []string{"--bundle-below", "1MiB"}, false},
		"bundles with zstd":                {weights, zstd, false},
		"bundles with gzip":                {weights, []string{"--bundle-below", "1MiB", "--compress", "gzip"}, false},
		"beside raw layers":                {weights, []string{"--layers", "raw"}, false},
		"three hundred weights":            {shards, nil, false},
		"ten thousand files":               {many, nil, false},
		"ten thousand files with zstd":     {many, []string{"--compress", "zstd"}, false},
		"of an artifact of raw layers":     {weights, nil, true},
		"of an artifact of tar layers":     {weights, []string{"--layers", "tar"}, true},
		"of an artifact of zstd bundles":   {weights, append(zstd, "--layers", "tar"), true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			u := newUser(t)
			file := "m.carton"
			if tt.model == nil {
				file = ours(t).file
			} else {
				tt.model.write(t, u.path(file))
			}
			ref := s.Host + "/org/" + strings.ReplaceAll(name, " ", "-") + ":1"
			if tt.later {
				u.push(t, append([]string{file, ref}, tt.flags...)...)
				u.must(t, "image", ref)
			} else {
				u.push(t, append([]string{file, ref, "--image"}, tt.flags...)...)
			}
			u.must(t, "pull", ref, "--unpack", "tree")
			mount := c.Mount(t, ref+"-image")
			sameTree(t, mountTree(t, mount), withModels(mountTree(t, u.path("tree"))))
			if name == "large files" {
				signedAndMounted(t, u, file, mount)
			}
		})
	}
}

// A model artifact is no image, and containerd shows nothing of it, without an
// error. That is what the image form is for; should it ever change, we want to
// know.
func TestContainerdShowsArtifactsEmpty(t *testing.T) {
	c := containerd.Start(t, containerd.Light)
	s := testregistry.Start(t, testregistry.Options{})
	u := newUser(t)
	weighty().write(t, u.path("m.carton"))
	for _, layers := range []string{"raw", "tar"} {
		for _, family := range []string{"cnai", "cncf"} {
			t.Run(layers+" "+family, func(t *testing.T) {
				ref := s.Host + "/org/" + layers + family + ":1"
				u.must(t, "push", "m.carton", ref, "--layers", layers, "--media-types", family)
				if tree := mountTree(t, c.Mount(t, ref)); len(tree) != 0 {
					t.Errorf("%d files and folders are mounted: containerd has learned to show model artifacts, and docs/kubernetes.md says that it has not", len(tree))
				}
			})
		}
	}
}

// A copy in Docker's own format, as some registries and mirrors want it, is still
// the volume; what carton-oci knows an image form by is lost with its annotations.
func TestContainerdMountsACopyInDockersFormat(t *testing.T) {
	c := containerd.Start(t, containerd.Light)
	s := testregistry.Start(t, testregistry.Options{})
	u := newUser(t)
	weighty().write(t, u.path("m.carton"))
	ref, copied := s.Host+"/org/m:1", s.Host+"/org/docker:1-image"
	u.push(t, "m.carton", ref, "--image")
	u.must(t, "pull", ref, "--unpack", "tree")
	skopeoCopy(t, u, ref+"-image", copied, "--format", "v2s2")
	sameTree(t, mountTree(t, c.Mount(t, copied)), withModels(mountTree(t, u.path("tree"))))
	checkError(t, u.run(t, "pull", copied, "-o", "back.carton"), badCase{
		code: failed, want: []string{"is no model", "a container image", "vnd.docker.container.image"}, hint: "crane export",
	})
}
