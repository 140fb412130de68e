package pmf_test

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/modelfile/pmf"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// exampleText is the example of the specification, with the indentation below
// checkpoints that its text lost. Its hashes are of files that nobody has.
const exampleText = `format:
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
        hash: 43ccb8cd86048450e11a26b472d5efd0
        path: model_configuration.py
    initialisation:
        file:
            hash: a268eb855778b3df3c7506639542a6af
            name: imagenet
            path: data/initialisation/resnet_weights_tf_dim_ordering_tf_kernels_notop.h5
    training:
        checkpoints:
            1:
                epoch: 1
                hash: b4975f62e007d54a55f53b44a367d998
                path: data/checkpoints/1.h5
            10:
                epoch: 10
                hash: 9d03a4a7455829da47c1c346eb17ddb1
                path: data/checkpoints/10.h5
            12:
                epoch: 12
                hash: 01afa021fdf47b609decd434755c06f6
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

const initialFile = "data/initialisation/resnet_weights_tf_dim_ordering_tf_kernels_notop.h5"

// exampleTree is the example with files, and with their hashes where it has
// others'.
func exampleTree() fstest.MapFS {
	fsys := fstest.MapFS{"data/build_parameters.yaml": &fstest.MapFile{Data: []byte("classes: 80\n")}}
	text := exampleText
	for name, hash := range map[string]string{
		"model_configuration.py": "43ccb8cd86048450e11a26b472d5efd0",
		initialFile:              "a268eb855778b3df3c7506639542a6af",
		"data/checkpoints/1.h5":  "b4975f62e007d54a55f53b44a367d998",
		"data/checkpoints/10.h5": "9d03a4a7455829da47c1c346eb17ddb1",
		"data/checkpoints/12.h5": "01afa021fdf47b609decd434755c06f6",
	} {
		content := []byte("content of " + name)
		fsys[name] = &fstest.MapFile{Data: content}
		text = strings.ReplaceAll(text, hash, md5Hex(content))
	}
	fsys["metadata.yaml"] = &fstest.MapFile{Data: []byte(text)}
	return fsys
}

func md5Hex(b []byte) string {
	sum := md5.Sum(b)
	return hex.EncodeToString(sum[:])
}

func ptr[T any](v T) *T { return &v }

func TestTheExampleIsRead(t *testing.T) {
	fsys := exampleTree()
	m, err := pmf.Read(fsys, pmf.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := verify(m, fsys); err != nil {
		t.Error(err)
	}
	file := func(name string) pmf.File { return pmf.File{Path: name, Hash: md5Hex(fsys[name].Data)} }
	want := &pmf.Model{
		MetadataFile: "metadata.yaml", Name: "model_name", ID: "3d6acb1fce4469ee1559ba16e02f922f",
		Producer:      pmf.Producer{Name: "faster_rcnn", Version: "0.4.0"},
		Training:      pmf.Training{Status: "running", LatestEpoch: ptr(int64(12)), Latest: "12"},
		Configuration: "model_configuration.py", BuildParameters: "data/build_parameters.yaml",
		Checkpoints: []pmf.Checkpoint{
			{File: file("data/checkpoints/1.h5"), Reference: "1"},
			{File: file("data/checkpoints/10.h5"), Reference: "10"},
			{File: file("data/checkpoints/12.h5"), Reference: "12"},
		},
		Initialisation: []pmf.File{file(initialFile)},
	}
	if diff := cmp.Diff(want, m, cmpopts.IgnoreUnexported(pmf.Model{}, pmf.Checkpoint{})); diff != "" {
		t.Error(diff)
	}
	if n := len(m.Sums()); n != 5 {
		t.Errorf("got %d sums, want 5", n)
	}
}

// The text as it is printed, without the files that its hashes are of, differs
// from every one of ours, and Sums says so of all.
func TestSumsNameEveryFileThatDiffers(t *testing.T) {
	fsys := exampleTree()
	fsys["metadata.yaml"] = &fstest.MapFile{Data: []byte(exampleText)}
	found := violations(t, fsys, pmf.Options{})
	if len(found) != 5 {
		t.Fatalf("got %v, want 5 violations", found)
	}
	for _, v := range found {
		if v.Rule != pmf.RuleChecksum || v.Line == 0 {
			t.Errorf("got %v, want %s", v, pmf.RuleChecksum)
		}
	}
}

// The printed example lost its indentation; YAML still reads it, and the
// format does not.
func TestTheExampleAsItIsPrintedIsRefused(t *testing.T) {
	fsys := exampleTree()
	before, after, _ := strings.Cut(exampleText, "checkpoints:\n")
	block, rest, _ := strings.Cut(after, "        end_epoch")
	printed := before + "checkpoints:\n" + strings.ReplaceAll("\n"+block, "\n    ", "\n")[1:] + "        end_epoch" + rest
	fsys["metadata.yaml"] = &fstest.MapFile{Data: []byte(printed)}
	_, err := pmf.Read(fsys, pmf.Options{})
	if err == nil || !strings.Contains(err.Error(), "model.training.checkpoints") {
		t.Errorf("got %v, want an error about checkpoints", err)
	}
}

// All that is wrong is said at once, with lines.
func TestAllViolationsAtOnce(t *testing.T) {
	fsys := exampleTree()
	text := string(fsys["metadata.yaml"].Data)
	text = strings.NewReplacer("faster_rcnn", "9lives", "version: 1.0.0", "version: 3", "status: running", "status: idle",
		"latest: 12\n", "latest: 99\n").Replace(text)
	fsys["metadata.yaml"] = &fstest.MapFile{Data: []byte(text)}
	delete(fsys, "data/checkpoints/10.h5")
	var got []string
	for _, v := range violations(t, fsys, pmf.Options{}) {
		got = append(got, fmt.Sprintf("%d %s %s", v.Line, v.Rule, v.Path))
	}
	want := []string{
		"7 type metadata.yaml: format.version",
		"3 producer-name metadata.yaml: format.producer.name",
		"40 status metadata.yaml: model.training.status",
		"35 latest-registered metadata.yaml: model.training.latest",
		"28 checkpoint-missing metadata.yaml: model.training.checkpoints.10.path",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnErrorReads(t *testing.T) {
	fsys := exampleTree()
	fsys["metadata.yaml"].Data = bytes.ReplaceAll(fsys["metadata.yaml"].Data, []byte("latest: 12\n"), []byte("latest: 13\n"))
	_, err := pmf.Read(fsys, pmf.Options{})
	const want = "metadata.yaml: model.training.latest: line 35: is the integer 13, which is no registered checkpoint (latest-registered)"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// Both readings: the library requires build_parameters.yaml, the text does not;
// the text calls the document Metadata.yaml.
func TestBothReadingsAreAccepted(t *testing.T) {
	fsys := exampleTree()
	delete(fsys, "data/build_parameters.yaml")
	fsys["Metadata.yaml"] = fsys["metadata.yaml"]
	delete(fsys, "metadata.yaml")
	m, err := pmf.Read(fsys, pmf.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	if m.BuildParameters != "" || m.MetadataFile != "Metadata.yaml" {
		t.Errorf("got %q, %q", m.BuildParameters, m.MetadataFile)
	}
}

// What the library's own writer leaves behind: a nested tree with an empty
// data/checkpoints, whose registered checkpoints lie at ".".
func nestedTree(fsys fstest.MapFS, depth int) fstest.MapFS {
	inner := exampleTree()
	text := string(inner["metadata.yaml"].Data)
	for _, n := range []string{"1", "10", "12"} {
		text = strings.Replace(text, "path: data/checkpoints/"+n+".h5", "path: .", 1)
		delete(inner, "data/checkpoints/"+n+".h5")
	}
	inner["metadata.yaml"].Data = []byte(text)
	inner["data/checkpoints"] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
	if depth > 1 {
		inner = nestedTree(inner, depth-1)
	}
	delete(fsys, initialFile)
	for name, f := range inner {
		fsys["data/initialisation/"+name] = f
	}
	before, after, _ := strings.Cut(string(fsys["metadata.yaml"].Data), "        file:\n")
	_, after, _ = strings.Cut(after, "    training:\n")
	fsys["metadata.yaml"].Data = []byte(before + "        pmf: {id: 3d6acb1fce4469ee1559ba16e02f922f, checkpoint: 12, name: model_name, " +
		"path: data/initialisation}\n    training:\n" + after)
	return fsys
}

func TestNestedTreesAreRead(t *testing.T) {
	fsys := nestedTree(exampleTree(), 2)
	m, err := pmf.Read(fsys, pmf.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	if m.Nested == nil || m.Nested.Nested == nil || m.Nested.Nested.Nested != nil {
		t.Fatalf("got %+v, want two nested trees", m)
	}
	if err := verify(m, fsys); err != nil {
		t.Error(err)
	}
	innermost := "data/initialisation/data/initialisation/" + initialFile
	if got := m.Sums()[len(m.Sums())-1].Path; got != innermost {
		t.Errorf("got the last sum of %s, want of %s", got, innermost)
	}
	fsys[innermost].Data = []byte("something else")
	found := violations(t, fsys, pmf.Options{})
	want := "data/initialisation/data/initialisation/metadata.yaml: model.initialisation.file.hash"
	if len(found) != 1 || found[0].Path != want {
		t.Errorf("got %v, want %s", found, want)
	}
}

func TestTreesNestOnlySoDeep(t *testing.T) {
	if _, err := pmf.Read(nestedTree(exampleTree(), pmf.MaxNesting), pmf.Options{}); err != nil {
		t.Error(err)
	}
	found := violations(t, nestedTree(exampleTree(), pmf.MaxNesting+1), pmf.Options{})
	if len(found) != 1 || found[0].Rule != pmf.RuleNesting {
		t.Errorf("got %v, want %s", found, pmf.RuleNesting)
	}
}

func TestSymlinksAndSpecialFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, exampleTree()); err != nil {
		t.Fatal(err)
	}
	ckpt := filepath.Join(dir, "data", "checkpoints", "12.h5")
	if err := os.Rename(ckpt, filepath.Join(dir, "elsewhere.h5")); err != nil {
		t.Fatal(err)
	}
	testenv.Symlink(t, "../../elsewhere.h5", ckpt)
	if found := violations(t, os.DirFS(dir), pmf.Options{Strict: true}); found != nil {
		t.Errorf("a symlink to a file: got %v", found)
	}
	testenv.Symlink(t, "nowhere", filepath.Join(dir, "data", "checkpoints", "13.h5"))
	found := violations(t, os.DirFS(dir), pmf.Options{})
	if len(found) != 1 || found[0].Rule != pmf.RuleSpecial || found[0].Path != "data/checkpoints/13.h5" {
		t.Errorf("a symlink to nothing: got %v, want %s", found, pmf.RuleSpecial)
	}
	fsys := exampleTree()
	fsys["data/initialisation/pipe"] = &fstest.MapFile{Mode: fs.ModeNamedPipe}
	if found := violations(t, fsys, pmf.Options{}); len(found) != 1 || found[0].Rule != pmf.RuleSpecial {
		t.Errorf("a pipe: got %v, want %s", found, pmf.RuleSpecial)
	}
}

func TestDetect(t *testing.T) {
	small := func(name, text string) fstest.MapFS { return fstest.MapFS{name: &fstest.MapFile{Data: []byte(text)}} }
	for _, c := range []struct {
		what string
		fsys fstest.MapFS
		want bool
	}{
		{"the example", exampleTree(), true},
		{"broken, but meant so", small("Metadata.yaml", "format: {producer: 3}\nmodel: {training: 3}\n"), true},
		{"two keys of common names", small("metadata.yaml", "format: onnx\nmodel: resnet\n"), false},
		{"two mappings of common names", small("metadata.yaml", "format: {name: onnx, version: 1}\nmodel: {name: resnet, id: 3}\n"), false},
		{"two keys of common names, beside checkpoints", fstest.MapFS{
			"metadata.yaml": &fstest.MapFile{Data: []byte("format: onnx\nmodel: resnet\n")}, "data/checkpoints/1": &fstest.MapFile{},
		}, false},
		{"half of it, beside checkpoints", fstest.MapFS{
			"metadata.yaml": &fstest.MapFile{Data: []byte("model: {name: m}\n")}, "data/checkpoints/1": &fstest.MapFile{},
		}, true},
		{"something else's metadata", small("metadata.yaml", "format: parquet\n"), false},
		{"no YAML", small("metadata.yaml", "["), false},
		{"a folder of that name", small("metadata.yaml/x", "format: {}\nmodel: 3\n"), false},
		{"no YAML, beside checkpoints", fstest.MapFS{
			"metadata.yaml": &fstest.MapFile{Data: []byte("[")}, "data/checkpoints/1": &fstest.MapFile{},
		}, true},
		{"something else's, beside checkpoints", fstest.MapFS{
			"metadata.yaml": &fstest.MapFile{Data: []byte("title: a book\n")}, "data/checkpoints/1": &fstest.MapFile{},
		}, false},
		{"a file beside it", fstest.MapFS{"metadata.yaml": &fstest.MapFile{}, "data/checkpoints": &fstest.MapFile{}}, false},
		{"nothing", small("model.bin", ""), false},
	} {
		got, err := pmf.Detect(c.fsys)
		if err != nil || got != c.want {
			t.Errorf("%s: got %t, %v, want %t", c.what, got, err, c.want)
		}
	}
	for name, c := range readCases(t, "refused") {
		if got, err := pmf.Detect(c.fsys); err != nil || got == (name == "metadata_missing") {
			t.Errorf("%s: got %t, %v", name, got, err)
		}
	}
	if _, err := pmf.Detect(os.DirFS(filepath.Join(t.TempDir(), "none"))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want fs.ErrNotExist", err)
	}
}

// A folder, or a symlink that leads nowhere, where a file or folder of the format
// must be breaks a rule, and is no error of the file system.
func TestWhatIsNoFileOrFolder(t *testing.T) {
	for name, c := range map[string]struct {
		at, target string
		rule       pmf.Rule
	}{
		"document that is a symlink to a folder":     {"metadata.yaml", "data", pmf.RuleMetadata},
		"document that is a symlink to itself":       {"metadata.yaml", "metadata.yaml", pmf.RuleMetadata},
		"document outside":                           {"metadata.yaml", "../metadata.yaml", pmf.RuleMetadata},
		"configuration that is a symlink in a ring":  {"model_configuration.py", "model_configuration.py", pmf.RuleConfiguration},
		"data outside":                               {"data", "../data", pmf.RuleData},
		"checkpoints outside":                        {"data/checkpoints", "../../checkpoints", pmf.RuleSpecial},
		"initialisation that is a symlink in a ring": {"data/initialisation", "initialisation", pmf.RuleSpecial},
		"parameters that are a symlink in a ring":    {"data/build_parameters.yaml", "build_parameters.yaml", pmf.RuleBuildParameters},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, exampleTree()); err != nil {
				t.Fatal(err)
			}
			at := filepath.Join(dir, filepath.FromSlash(c.at))
			if err := errors.Join(os.RemoveAll(at), os.Symlink(c.target, at)); err != nil {
				t.Fatal(err)
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			found := violations(t, root.FS(), pmf.Options{})
			if len(found) != 1 || found[0].Rule != c.rule {
				t.Errorf("got %v, want %s", found, c.rule)
			}
		})
	}
}

// PyYAML reads a document of any version 1.
func TestVersionDirective(t *testing.T) {
	for head, ok := range map[string]bool{"%YAML 1.2\n---\n": true, "# by hand\n\n%YAML 1.1\n--- \n": true, "%YAML 2.0\n---\n": false} {
		fsys := exampleTree()
		fsys["metadata.yaml"] = &fstest.MapFile{Data: append([]byte(head), fsys["metadata.yaml"].Data...)}
		if _, err := pmf.Read(fsys, pmf.Options{}); (err == nil) != ok {
			t.Errorf("%q: got %v", head, err)
		}
	}
}

func TestEmptyValuesAreQuoted(t *testing.T) {
	fsys := exampleTree()
	raw := strings.Replace(string(fsys["metadata.yaml"].Data), "value: 0.4.0", `value: ""`, 1)
	fsys["metadata.yaml"] = &fstest.MapFile{Data: []byte(raw)}
	if _, err := pmf.Read(fsys, pmf.Options{}); err == nil || !strings.Contains(err.Error(), `"" is not a version`) {
		t.Errorf("got %v", err)
	}
}

func TestHeadless(t *testing.T) {
	whole := exampleTree()
	if pmf.Headless(whole) {
		t.Error("the example has a document")
	}
	delete(whole, "metadata.yaml")
	if !pmf.Headless(whole) {
		t.Error("got false for the example without its document")
	}
	if pmf.Headless(fstest.MapFS{"data/checkpoints/1.pt": &fstest.MapFile{}}) {
		t.Error("checkpoints alone are anybody's")
	}
}
