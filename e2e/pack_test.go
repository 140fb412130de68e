package e2e

import (
	"crypto/md5"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
)

// The promise: loose files become the same carton wherever they are packed, on
// the way to a file or to a registry, and come back as they were.

// packedCarton is what pack --format json prints.
type packedCarton struct {
	Path, ModelHash string
	Size            int64
	Members         int
	Linked          []string
	Runner          any
	Filled          []struct{ Field, Value, From string }
	LeftOut         []string
	Warnings        []string
}

func (u *user) pack(t testing.TB, args ...string) packedCarton {
	t.Helper()
	var p packedCarton
	u.json(t, &p, append([]string{"pack", "--format", "json"}, args...))
	return p
}

// writeFolder writes files; content that begins with "-> " is a symlink's.
func writeFolder(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if target, ok := strings.CutPrefix(content, "-> "); ok {
			if err := os.Symlink(target, file); err != nil {
				t.Fatal(err)
			}
			continue
		}
		writeFile(t, file, content)
	}
}

// modelOf tells files from symlinks.
func modelOf(files map[string]string) *model {
	m := &model{files: map[string]string{}, symlinks: map[string]string{}}
	for name, content := range files {
		if target, ok := strings.CutPrefix(content, "-> "); ok {
			m.symlinks[name] = target
		} else {
			m.files[name] = content
		}
	}
	return m
}

// hub is a folder as a hub's cache keeps a model: content by hash, and symlinks
// that name it.
func hub() map[string]string {
	return map[string]string{
		"blobs/1f2e": random("weights", 3_000_000), "blobs/aa": "{}\n", "refs/main": "abc",
		"snapshots/abc/model.bin": "-> ../../blobs/1f2e", "snapshots/abc/config.json": "-> ../../blobs/aa",
		".no_exist/abc/added_tokens.json": "", "README.md": "# A model\n",
	}
}

func TestPackPushPull(t *testing.T) {
	u := newUser(t)
	s := testregistry.Start(t, testregistry.Options{})
	flags := []string{"--runner", "noop", "--name", "hub", "--license", "Apache-2.0", "--opt", "threads=4"}
	writeFolder(t, u.path("hub"), hub())
	p := u.pack(t, append([]string{"./hub", "-o", "m.carton"}, flags...)...)
	if p.Members != len(hub())+2 || len(p.Warnings) != 0 || len(p.LeftOut) != 0 {
		t.Errorf("got %+v", p)
	}

	// A second user packs a copy under another name, on the way, and sends nothing
	// that is there: what they push is the first one's artifact.
	first := u.push(t, "m.carton", s.Host+"/org/hub:1")
	other := newUser(t)
	writeFolder(t, other.path("copy"), hub())
	second := other.push(t, append([]string{"copy/", s.Host + "/org/hub:2"}, flags...)...)
	if second.Digest != first.Digest || second.ModelHash != p.ModelHash {
		t.Errorf("got %s, model hash %s, want %s, %s", second.Digest, second.ModelHash, first.Digest, p.ModelHash)
	}
	if n := second.statuses()["uploaded"]; n != 0 || *second.BytesUploaded != 0 {
		t.Errorf("%d layers were sent again", n)
	}
	// And to a registry that has nothing, all of it.
	fresh := testregistry.Start(t, testregistry.Options{})
	third := other.push(t, append([]string{"./copy", fresh.Host + "/org/hub:1"}, flags...)...)
	if third.Digest != first.Digest || *third.BytesUploaded != *first.BytesUploaded {
		t.Errorf("got %s, %d bytes, want %s, %d", third.Digest, *third.BytesUploaded, first.Digest, *first.BytesUploaded)
	}
	onlyThese(t, other.tmp)

	got := other.pull(t, fresh.Host+"/org/hub:1", "-o", "back.carton")
	if got.ModelHash != p.ModelHash || fileSum(t, other.path("back.carton")) != fileSum(t, u.path("m.carton")) {
		t.Error("what came back is another file than what was packed")
	}
	other.must(t, "pull", s.Host+"/org/hub:2", "--unpack", "back", "--folder", "model")
	same(t, readTree(t, other.path("back")), modelOf(hub()))
	other.must(t, "verify", s.Host+"/org/hub:1")
}

// The example of the Plums Model Format, with files that have the hashes that
// it records, comes back from a registry as it was.
func TestPlumsTreeThroughARegistry(t *testing.T) {
	tree := map[string]string{
		"model_configuration.py": "backbone = 'resnet'\n", "data/build_parameters.yaml": "classes: 80\n",
		"data/initialisation/resnet_weights_tf_dim_ordering_tf_kernels_notop.h5": random("init", 200_000),
		"data/checkpoints/1.h5": random("1", 300_000), "data/checkpoints/10.h5": random("10", 300_000), "data/checkpoints/12.h5": random("12", 300_000),
	}
	tree["metadata.yaml"] = plumsExample
	for name, content := range tree {
		sum := md5.Sum([]byte(content))
		tree["metadata.yaml"] = strings.Replace(tree["metadata.yaml"], "MD5 of "+name+"\n", hex.EncodeToString(sum[:])+"\n", 1)
	}
	u := newUser(t)
	s := testregistry.Start(t, testregistry.Options{})
	writeFolder(t, u.path("tree"), tree)
	p := u.pack(t, "tree", "--runner", "noop")
	pushed := u.push(t, p.Path, s.Host+"/org/plums:1")
	if again := u.push(t, "tree/", s.Host+"/org/plums:2", "--runner", "noop"); again.Digest != pushed.Digest {
		t.Errorf("got %s, want %s", again.Digest, pushed.Digest)
	}
	u.must(t, "pull", s.Host+"/org/plums:1", "--unpack", "back", "--folder", "model")
	same(t, readTree(t, u.path("back")), modelOf(tree))
	// What came back is a tree that packs to the same carton.
	if again := u.pack(t, "back", "--runner", "noop"); again.ModelHash != p.ModelHash {
		t.Errorf("got the model hash %s, want %s", again.ModelHash, p.ModelHash)
	}
}

const plumsExample = `format:
    producer:
        name: faster_rcnn
        version:
            format: py_pa
            value: 0.4.0
    version: 1.0.0
model:
    name: model_name
    id: 3d6acb1fce4469ee1559ba16e02f922f
    configuration:
        hash: MD5 of model_configuration.py
        path: model_configuration.py
    initialisation:
        file:
            hash: MD5 of data/initialisation/resnet_weights_tf_dim_ordering_tf_kernels_notop.h5
            name: imagenet
            path: data/initialisation/resnet_weights_tf_dim_ordering_tf_kernels_notop.h5
    training:
        checkpoints:
            1:
                epoch: 1
                hash: MD5 of data/checkpoints/1.h5
                path: data/checkpoints/1.h5
            10:
                epoch: 10
                hash: MD5 of data/checkpoints/10.h5
                path: data/checkpoints/10.h5
            12:
                epoch: 12
                hash: MD5 of data/checkpoints/12.h5
                path: data/checkpoints/12.h5
        end_epoch: null
        end_time: null
        latest: 12
        latest_epoch: 12
        latest_time: 1552481973.357268
        start_epoch: 0
        start_time: 1552464823.166782
        status: running
`

// Arrays as numpy saves them, in whatever order, become tensors in C order,
// little-endian: what numpy itself makes of them.
func TestNumpyArraysBecomeTensors(t *testing.T) {
	python := numpyPython(t)
	u := newUser(t)
	script := `import numpy
a = numpy.arange(24, dtype="<f4").reshape(2, 3, 4)
arrays = {"c": a, "fortran": numpy.asfortranarray(a), "big": a.astype(">f8"), "both": numpy.asfortranarray(a.astype(">i2")),
          "scalar": numpy.array(7, dtype="u8"), "empty": numpy.zeros((0, 3), dtype="<i4"), "turned": a.transpose(2, 0, 1)}
for name, x in arrays.items():
    numpy.save(name + ".npy", x)
    open(name + ".bin", "wb").write(numpy.ascontiguousarray(x).astype(x.dtype.newbyteorder("<")).tobytes("C"))
`
	if r := u.exec(t, python, "-c", script); r.code != 0 {
		t.Fatal(r.stderr)
	}
	names := []string{"big", "both", "c", "empty", "fortran", "scalar", "turned"}
	var parts []string
	for _, name := range names {
		parts = append(parts, "input:"+name+"="+name+".npy")
	}
	writeFolder(t, u.path("model"), map[string]string{"w": "weights"})
	u.pack(t, "model", "-o", "m.carton", "--runner", "noop", "--self-test", strings.Join(parts, ","))
	u.must(t, "verify", "m.carton")
	tensors := u.must(t, "tensors", "m.carton").stdout
	for i, want := range []string{"F64", "I16", "F32", "I32", "F32", "U64", "F32"} {
		row := regexp.MustCompile("(?m)^self_test_0.input." + names[i] + " +" + want + " ")
		if !row.MatchString(tensors) {
			t.Errorf("got\n%s\nwant %s", tensors, row)
		}
	}
	for i, name := range names {
		got := u.must(t, "cat", "m.carton", "tensor_data/tensor_"+string(rune('0'+i))+".bin").stdout
		want, err := os.ReadFile(u.path(name + ".bin"))
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: got %x, want %x", name, got, want)
		}
	}
}
