package pack_test

import (
	"crypto/md5"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/modelfile/pmf"
	"github.com/carton-oci/carton-oci/pkg/pack"
	"github.com/google/go-cmp/cmp"
)

// plums is a small tree in the Plums Model Format. Its second checkpoint is a
// symlink to a file outside of data/.
func plums(status string) map[string]string {
	sum := func(s string) string {
		b := md5.Sum([]byte(s))
		return hex.EncodeToString(b[:])
	}
	return map[string]string{
		"config.py": "depth = 3\n", "data/build_parameters.yaml": "classes: 2\n", "data/checkpoints/1.h5": "one",
		"data/checkpoints/best.h5": "-> ../../shared/best", "shared/best": "best", "data/initialisation/": "",
		"metadata.yaml": strings.NewReplacer("CONF", sum("depth = 3\n"), "ONE", sum("one"), "BEST", sum("best"), "STATUS", status).Replace(
			`format: {version: 1.0.0, producer: {name: trainer, version: {format: py_pa, value: 1.2.0}}}
model:
    name: ships
    id: 3d6acb1fce44
    configuration: {path: config.py, hash: CONF}
    initialisation: null
    training:
        status: STATUS
        start_time: 1.0
        start_epoch: 0
        latest_time: 2.0
        latest_epoch: 4
        end_time: null
        end_epoch: null
        latest: best
        checkpoints:
            1: {epoch: 1, path: data/checkpoints/1.h5, hash: ONE}
            best: {epoch: 4, path: data/checkpoints/best.h5, hash: BEST}
`),
	}
}

func TestAPlumsTreeIsPackedAsItIs(t *testing.T) {
	files := plums("running")
	c := open(t, noop, tree(t, files))
	wantListing(t, c, "carton.toml", "model/config.py", "model/data/build_parameters.yaml", "model/data/checkpoints/1.h5",
		"model/data/checkpoints/best.h5 -> ../../shared/best", "model/metadata.yaml", "model/shared/best", "tensor_data/index.toml")
	for name, content := range files {
		if strings.HasSuffix(name, "/") || strings.HasPrefix(content, "-> ") {
			continue
		}
		if got := read(t, c, "model/"+name); got != content {
			t.Errorf("%s: got %q, want %q", name, got, content)
		}
	}
	const want = `spec_version = 1
model_name = "ships"
short_description = "Plums model by trainer 1.2.0, training running"
model_description = '''
A model in the Plums Model Format 1.0.0.

- name: ships
- id: 3d6acb1fce44
- producer: trainer 1.2.0
- training: running, epoch 4
- checkpoints: 1, best
- latest checkpoint: best
'''

[runner]
runner_name = "noop"
required_framework_version = "*"
runner_compat_version = 1

[pmf]
format_version = "1.0.0"
name = "ships"
id = "3d6acb1fce44"
producer = "trainer"
producer_version = "1.2.0"
training_status = "running"
latest_epoch = 4
latest_checkpoint = "best"
configuration = "config.py"

[categories]
"model/config.py" = "weight.config"
"model/shared/best" = "weight"
`
	if diff := cmp.Diff(want, read(t, c, carton.InfoName)); diff != "" {
		t.Error(diff)
	}
	if c.PMF == nil || c.PMF.Training.Status != "running" {
		t.Errorf("got %+v", c.PMF)
	}
	if diff := cmp.Diff([]string{"data/initialisation/"}, c.LeftOut); diff != "" {
		t.Error(diff)
	}
	// What is given counts.
	opts := noop
	opts.ModelName, opts.ShortDescription, opts.ModelDescription = "mine", "short", "long"
	c = open(t, opts, tree(t, files))
	if c.Info.ModelName != "mine" || c.Info.ShortDescription != "short" || c.Info.ModelDescription != "long" {
		t.Errorf("got %+v", c.Info)
	}
}

func TestABrokenPlumsTreeIsRefused(t *testing.T) {
	err := refused(t, noop, carton.ErrFormat, "model.training.status", tree(t, plums("walking")))
	var invalid *pmf.Invalid
	if !errors.As(err, &invalid) || len(invalid.Violations) != 1 || invalid.Violations[0].Rule != pmf.RuleStatus {
		t.Errorf("got %v, want one violation of %s", err, pmf.RuleStatus)
	}
	forced := noop
	forced.AllowInvalid = true
	c := open(t, forced, tree(t, plums("walking")))
	wantWarnings(t, c, "model.training.status", "is packed as a folder like any other")
	if c.PMF != nil {
		t.Error("want no tree")
	}
}

func TestRecordedChecksumsAreChecked(t *testing.T) {
	files := plums("running")
	files["data/checkpoints/1.h5"], files["shared/best"] = "two", "worst"
	err := refused(t, noop, carton.ErrChecksum, "(checksum)", tree(t, files))
	var invalid *pmf.Invalid
	if !errors.As(err, &invalid) || len(invalid.Violations) != 2 {
		t.Errorf("got %v, want two violations", err)
	}
	if errors.Is(err, carton.ErrFormat) {
		t.Error("want no ErrFormat")
	}
	forced := noop
	forced.AllowInvalid = true
	wantWarnings(t, open(t, forced, tree(t, files)), "checkpoints.1.hash", "checkpoints.best.hash")
}

func TestUnknownKeysWarnAndStrictRefuses(t *testing.T) {
	files := plums("running")
	files["metadata.yaml"] += "    author: me\n"
	wantWarnings(t, open(t, noop, tree(t, files)), "model.author")
	strict := noop
	strict.Strict = true
	refused(t, strict, carton.ErrFormat, "(unknown-key)", tree(t, files))
}

// A document that only has the name is a file like any other.
func TestOtherMetadataIsNoPlumsTree(t *testing.T) {
	for _, text := range []string{"title: a book\n", "format: onnx\nmodel: resnet\n"} {
		c := open(t, noop, tree(t, map[string]string{"metadata.yaml": text}))
		if c.PMF != nil {
			t.Errorf("%s: want no tree", text)
		}
	}
	files := plums("running")
	delete(files, "metadata.yaml")
	c := open(t, noop, tree(t, files))
	wantWarnings(t, c, "has no metadata.yaml")
	if c.PMF != nil {
		t.Error("without a document: want no tree")
	}
	c = open(t, pack.Options{Info: carton.Info{ModelName: "x", Runner: carton.Runner{Name: "noop"}}}, tree(t, plums("running")))
	if c.PMF == nil {
		t.Error("want a tree")
	}
}

// What files are in a tree is said where their names don't, and nowhere else.
func TestFilesOfATreeAreCalledByTheirRoles(t *testing.T) {
	files := plums("running")
	rename := func(old, name string) {
		files[name] = files[old]
		delete(files, old)
		files["metadata.yaml"] = strings.ReplaceAll(files["metadata.yaml"], "path: "+old+",", "path: "+name+",")
	}
	rename("data/checkpoints/1.h5", "data/checkpoints/1.json")
	rename("data/checkpoints/best.h5", "data/checkpoints/best.py")
	files["helper.py"] = "a script\n"
	c := open(t, noop, tree(t, files))
	want := map[string]string{
		"model/config.py": "weight.config", "model/data/checkpoints/1.json": "weight",
		"model/data/checkpoints/best.py": "weight", "model/shared/best": "weight", // the symlink, and what it ends at
	}
	if diff := cmp.Diff(want, c.Info.Categories); diff != "" {
		t.Error(diff)
	}
	if again := open(t, noop, tree(t, files)); read(t, c, carton.InfoName) != read(t, again, carton.InfoName) {
		t.Error("the same tree gives another carton.toml")
	}
	files = plums("running")
	rename("config.py", "config.yaml")
	rename("shared/best", "shared/best.h5")
	files["data/checkpoints/best.h5"] = "-> ../../shared/best.h5"
	c = open(t, noop, tree(t, files))
	if c.Info.Categories != nil || strings.Contains(read(t, c, carton.InfoName), "categories") {
		t.Errorf("got %v for names that say it all", c.Info.Categories)
	}
}

// A tree inside of a tree has its own.
func TestRolesInANestedTree(t *testing.T) {
	inner := plums("finished")
	for _, name := range []string{"data/checkpoints/1.h5", "data/checkpoints/best.h5", "shared/best", "data/initialisation/"} {
		delete(inner, name)
	}
	inner["metadata.yaml"] = strings.NewReplacer("end_time: null", "end_time: 2.0", "end_epoch: null", "end_epoch: 4").Replace(inner["metadata.yaml"])
	files := plums("running")
	delete(files, "data/initialisation/")
	for name, content := range inner {
		files["data/initialisation/"+name] = content
	}
	files["metadata.yaml"] = strings.Replace(files["metadata.yaml"], "initialisation: null",
		"initialisation: {pmf: {name: ships, id: 3d6acb1fce44, path: data/initialisation/, checkpoint: best}}", 1)
	c := open(t, noop, tree(t, files))
	if got := c.Info.Categories["model/data/initialisation/config.py"]; got != "weight.config" {
		t.Errorf("got %q for the configuration of the nested tree in %v", got, c.Info.Categories)
	}
}
