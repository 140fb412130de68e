package layout_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/place"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/layout/storetest"
	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

func createDir(t *testing.T, path string) *layout.Dir {
	t.Helper()
	d, err := layout.CreateDir(path)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// pushed is a new folder with an artifact under the tags.
func pushed(t *testing.T, seed byte, tags ...string) (*layout.Dir, *layout.Artifact) {
	t.Helper()
	d := createDir(t, filepath.Join(t.TempDir(), "layout"))
	a := storetest.Artifact(t, seed)
	if _, err := layout.Push(t.Context(), d, a, layout.PushOptions{Tags: tags}); err != nil {
		t.Fatal(err)
	}
	return d, a
}

// files returns the paths of all files below dir.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			path, _ = filepath.Rel(dir, path)
			list = append(list, filepath.ToSlash(path))
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return list
}

func TestDirFilesArePinned(t *testing.T) {
	d, a := pushed(t, 1, "v1", "latest")
	want := []string{
		"blobs/sha256/" + a.Digest.Encoded(), "blobs/sha256/" + a.Config.Digest.Encoded(),
		"blobs/sha256/" + a.Layers[0].Digest.Encoded(), "blobs/sha256/" + a.Layers[1].Digest.Encoded(),
		"index.json", "oci-layout",
	}
	got := files(t, d.Path())
	less := cmp.Transformer("set", func(list []string) map[string]bool {
		set := map[string]bool{}
		for _, s := range list {
			set[s] = true
		}
		return set
	})
	if diff := cmp.Diff(want, got, less); diff != "" {
		t.Error(diff)
	}
	wantText(t, filepath.Join(d.Path(), "oci-layout"), `{"imageLayoutVersion":"1.0.0"}`)
	entry := func(tag string) string {
		return `{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"` + string(a.Digest) +
			`","size":584,"annotations":{"org.opencontainers.image.ref.name":"` + tag + `"},"artifactType":"application/vnd.example.v1"}`
	}
	wantText(t, filepath.Join(d.Path(), "index.json"), `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json",`+
		`"manifests":[`+entry("v1")+`,`+entry("latest")+`]}`)
	for _, name := range got {
		if fi, err := os.Stat(filepath.Join(d.Path(), name)); err != nil || fi.Mode() != 0o644 && runtime.GOOS != "windows" {
			t.Errorf("%s: got mode %v, %v, want 0644", name, fi.Mode(), err)
		}
	}
}

func wantText(t *testing.T, path, want string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Errorf("%s: %s", path, diff)
	}
}

func TestOpenDirWantsALayout(t *testing.T) {
	cases := []struct {
		name  string
		files map[string]string
		path  string
		want  error
		text  string
	}{
		{"missing", nil, "nothing", layout.ErrNotFound, "no oci-layout"},
		{"below a missing one", nil, "nothing/at/all", layout.ErrNotFound, "no oci-layout"},
		{"a file", map[string]string{"f": "x"}, "f", layout.ErrNotFound, "no oci-layout"},
		{"another folder", map[string]string{"d/f": "x"}, "d", layout.ErrNotFound, "no oci-layout"},
		{"version 2", map[string]string{"d/oci-layout": `{"imageLayoutVersion":"2.0.0"}`}, "d", layout.ErrFormat, "version 2.0.0, want 1.0.0"},
		{"no version", map[string]string{"d/oci-layout": `{}`}, "d", layout.ErrFormat, "want 1.0.0"},
		{"no JSON", map[string]string{"d/oci-layout": `x`}, "d", layout.ErrFormat, "not JSON"},
		{"key twice", map[string]string{"d/oci-layout": `{"imageLayoutVersion":"1.0.0","imageLayoutVersion":"1.0.0"}`}, "d", layout.ErrFormat, "twice"},
		{"key in capitals", map[string]string{"d/oci-layout": `{"ImageLayoutVersion":"1.0.0"}`}, "d", layout.ErrFormat, "want imageLayoutVersion"},
		{"too large", map[string]string{"d/oci-layout": strings.Repeat(" ", layout.MaxManifestBytes+1)}, "d", layout.ErrLimit, "is over"},
	}
	for _, c := range cases {
		dir := t.TempDir()
		writeTree(t, dir, c.files)
		_, err := layout.OpenDir(filepath.Join(dir, c.path))
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want %v: …%s…", c.name, err, c.want, c.text)
		}
	}
}

func TestCreateDirTakesNoFolderThatHoldsSomething(t *testing.T) {
	dir := t.TempDir()
	writeTree(t, dir, map[string]string{"file": "x", "full/readme": "x"})
	for _, name := range []string{"file", "full"} {
		if _, err := layout.CreateDir(filepath.Join(dir, name)); !errors.Is(err, layout.ErrFormat) {
			t.Errorf("%s: got %v, want ErrFormat", name, err)
		}
	}
	_, err := layout.CreateDir(filepath.Join(dir, "full"))
	if len(hint.Of(err)) != 1 {
		t.Errorf("got the hints %q, want one", hint.Of(err))
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"empty", "new", "new/below/new"} {
		d := createDir(t, filepath.Join(dir, name))
		if got := files(t, d.Path()); got != nil {
			t.Errorf("%s: has %q before the first push", name, got)
		}
		if _, err := d.Resolve(t.Context(), "v1"); !errors.Is(err, layout.ErrNotFound) {
			t.Errorf("%s: got %v, want ErrNotFound", name, err)
		}
		b, desc := storetest.Blob(1, 10)
		if err := d.Push(t.Context(), storetest.Layer(desc, b), layout.Watch{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := layout.OpenDir(d.Path()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDirLeavesNothingOfAFailedPush(t *testing.T) {
	d, _ := pushed(t, 1, "v1")
	before := files(t, d.Path())
	b, desc := storetest.Blob(9, 1<<20)
	if err := d.Push(t.Context(), storetest.Layer(desc, b[1:]), layout.Watch{}); !errors.Is(err, layout.ErrDigest) {
		t.Errorf("got %v, want ErrDigest", err)
	}
	if diff := cmp.Diff(before, files(t, d.Path())); diff != "" {
		t.Error(diff)
	}
}

func TestDirKeepsAnEmptyBlob(t *testing.T) {
	d, _ := pushed(t, 1)
	desc := descOf(typeLayer, nil)
	if err := d.Push(t.Context(), storetest.Layer(desc, nil), layout.Watch{}); err != nil {
		t.Fatal(err)
	}
	if n, err := d.Stat(t.Context(), desc.Digest); n != 0 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
}

func TestDirDamagedBlobs(t *testing.T) {
	d, a := pushed(t, 1)
	desc := a.Layers[0].Descriptor
	name := filepath.Join(d.Path(), "blobs", "sha256", desc.Digest.Encoded())
	if err := os.Truncate(name, 10); err != nil {
		t.Fatal(err)
	}
	if _, err := d.OpenRange(t.Context(), desc, 0, -1); !errors.Is(err, layout.ErrDigest) {
		t.Errorf("cut short: got %v, want ErrDigest", err)
	}
	if err := d.PutManifest(t.Context(), a.Descriptor, a.Manifest, layout.PutOptions{Tags: []string{"v2"}}); !errors.Is(err, layout.ErrDigest) {
		t.Errorf("a tag for an artifact that is damaged: got %v, want ErrDigest", err)
	}
	if err := d.Push(t.Context(), layout.Layer{Descriptor: desc, Open: a.Layers[0].Open}, layout.Watch{}); err != nil {
		t.Errorf("is not repaired: %v", err)
	}
	if _, err := layout.ReadBlob(t.Context(), d, desc, 1<<20); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(name, make([]byte, desc.Size), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := layout.ReadBlob(t.Context(), d, desc, 1<<20); !errors.Is(err, layout.ErrDigest) {
		t.Errorf("other bytes: got %v, want ErrDigest", err)
	}
	if err := errors.Join(os.Remove(name), os.Mkdir(name, 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := d.Push(t.Context(), layout.Layer{Descriptor: desc, Open: a.Layers[0].Open}, layout.Watch{}); !errors.Is(err, layout.ErrFormat) {
		t.Errorf("a folder in a blob's place: got %v, want ErrFormat", err)
	}
}

func TestDirManifestNeedsItsBlobs(t *testing.T) {
	d, _ := pushed(t, 1)
	a := storetest.Artifact(t, 2)
	if err := d.PutManifest(t.Context(), a.Descriptor, a.Manifest, layout.PutOptions{Tags: []string{"v1"}}); !errors.Is(err, layout.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	if _, err := d.Resolve(t.Context(), "v1"); !errors.Is(err, layout.ErrNotFound) {
		t.Errorf("the tag is there: %v", err)
	}
}

func ExampleCreateDir() {
	tmp, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(tmp)
	ctx := context.Background()
	dir, err := layout.CreateDir(filepath.Join(tmp, "layout"))
	if err != nil {
		fmt.Println(err)
		return
	}
	config := []byte("{}")
	a, err := layout.NewArtifact(layout.ArtifactSpec{
		Config: layout.Layer{Descriptor: descOf("application/vnd.example.config.v1+json", config), Open: opens(config)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := layout.Push(ctx, dir, a, layout.PushOptions{Tags: []string{"v1"}}); err != nil {
		fmt.Println(err)
		return
	}
	desc, err := dir.Resolve(ctx, "v1") // skopeo inspect --raw oci:layout:v1
	fmt.Println(desc.Digest == a.Digest, err)
	// Output: true <nil>
}

func TestDirTags(t *testing.T) {
	d, a := pushed(t, 1)
	for _, tag := range []string{"v1", "1.0-rc_1", "_x", "registry.example:5000/team/model:v1", "a+b@c"} {
		if err := d.PutManifest(t.Context(), a.Descriptor, a.Manifest, layout.PutOptions{Tags: []string{tag}}); err != nil {
			t.Errorf("%s: %v", tag, err)
		}
		if desc, err := d.Resolve(t.Context(), tag); err != nil || desc.Digest != a.Digest {
			t.Errorf("%s: got %v, %v", tag, desc, err)
		}
	}
	for _, tag := range []string{"", "-x", ".x", "a b", "a\nb", "ä", strings.Repeat("x", 256), string(a.Digest)} {
		if err := d.PutManifest(t.Context(), a.Descriptor, a.Manifest, layout.PutOptions{Tags: []string{tag}}); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%q: got %v, want fs.ErrInvalid", tag, err)
		}
	}
}

func TestDirFindsManifestsThatNoEntryLists(t *testing.T) {
	d, a := pushed(t, 1, "v1")
	index := filepath.Join(d.Path(), "index.json")
	if err := os.WriteFile(index, []byte(`{"schemaVersion":2,"manifests":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if desc, err := d.Resolve(t.Context(), string(a.Digest)); err != nil || cmp.Diff(a.Descriptor, desc) != "" {
		t.Errorf("got %+v, %v, want %+v", desc, err, a.Descriptor)
	}
	other := map[string]string{
		`{"schemaVersion":2,"manifests":[]}`: ocispec.MediaTypeImageIndex,
		`{"mediaType":"x/y","layers":[]}`:    "x/y",
		`{"layers":[],"manifests":[]}`:       "",
		`{"config":{}}`:                      "",
		`weights`:                            "",
	}
	for body, want := range other {
		b := []byte(body)
		if err := d.Push(t.Context(), layout.Layer{Descriptor: descOf(typeLayer, b), Open: storetest.Opener(b)}, layout.Watch{}); err != nil {
			t.Fatal(err)
		}
		desc, err := d.Resolve(t.Context(), string(digest.FromBytes(b)))
		if desc.MediaType != want || (want == "") != errors.Is(err, layout.ErrNotFound) {
			t.Errorf("%s: got %q, %v, want %q", body, desc.MediaType, err, want)
		}
	}
}

func TestDirIndexFaults(t *testing.T) {
	entry := func(hexdigits, tag string) string {
		return `{"mediaType":"` + ocispec.MediaTypeImageManifest + `","digest":"sha256:` + hexdigits + `","size":2,"annotations":{"org.opencontainers.image.ref.name":"` + tag + `"}}`
	}
	cases := []struct{ name, index, text string }{
		{"no JSON", `x`, "not JSON"},
		{"an image manifest", good, ""},
		{"version 1", `{"schemaVersion":1,"manifests":[]}`, "schemaVersion 1, want 2"},
		{"manifests twice", `{"schemaVersion":2,"manifests":[],"manifests":[]}`, "twice"},
		{"Manifests", `{"schemaVersion":2,"Manifests":[]}`, "want manifests"},
		{"Digest", `{"schemaVersion":2,"manifests":[{"Digest":""}]}`, "want digest"},
		{"trailing", `{"schemaVersion":2,"manifests":[]}{}`, "behind"},
		{"no array", `{"schemaVersion":2,"manifests":{}}`, "cannot unmarshal"},
		{"tag twice", `{"schemaVersion":2,"manifests":[` + entry(hexA, "v1") + `,` + entry(hexB, "v1") + `]}`, "names two manifests"},
		{"bad digest", `{"schemaVersion":2,"manifests":[` + entry("../../x", "v1") + `]}`, `got the digest "sha256:../../x"`},
	}
	for _, c := range cases {
		d, a := pushed(t, 1, "v1")
		if err := os.WriteFile(filepath.Join(d.Path(), "index.json"), []byte(c.index), 0o600); err != nil {
			t.Fatal(err)
		}
		want := layout.ErrFormat
		if c.text == "" {
			want = layout.ErrNotFound
		}
		if _, err := d.Resolve(t.Context(), "v1"); !errors.Is(err, want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want %v: …%s…", c.name, err, want, c.text)
		}
		if c.name == "tag twice" || c.name == "bad digest" || c.text == "" {
			continue // a push may mend these
		}
		if err := d.PutManifest(t.Context(), a.Descriptor, a.Manifest, layout.PutOptions{Tags: []string{"v2"}}); !errors.Is(err, layout.ErrFormat) {
			t.Errorf("%s: PutManifest: got %v, want ErrFormat", c.name, err)
		}
		wantText(t, filepath.Join(d.Path(), "index.json"), c.index)
	}
	d, _ := pushed(t, 1, "v1")
	if err := os.Remove(filepath.Join(d.Path(), "index.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Resolve(t.Context(), "v1"); !errors.Is(err, layout.ErrFormat) {
		t.Errorf("no index.json: got %v, want ErrFormat", err)
	}
}

func TestDirKeepsWhatOthersWroteInIndex(t *testing.T) {
	d, a := pushed(t, 1)
	foreign := `{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha512:` + hexA + hexB + `","size":7,` +
		`"platform":{"architecture":"amd64","os":"linux"},"x":[1, 2],"annotations":{"org.opencontainers.image.ref.name":"other","k":"<v>"}}`
	index := `{"schemaVersion":2,"manifests":[` + foreign + `],"annotations":{"k":"v"}}`
	name := filepath.Join(d.Path(), "index.json")
	if err := os.WriteFile(name, []byte(index), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.PutManifest(t.Context(), a.Descriptor, a.Manifest, layout.PutOptions{Tags: []string{"v1"}}); err != nil {
		t.Fatal(err)
	}
	wantText(t, name, `{"schemaVersion":2,"manifests":[`+strings.ReplaceAll(foreign, "[1, 2]", "[1,2]")+`,`+
		`{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"`+string(a.Digest)+`","size":584,`+
		`"annotations":{"org.opencontainers.image.ref.name":"v1"},"artifactType":"application/vnd.example.v1"}],"annotations":{"k":"v"}}`)
}

// entries lists tag and digest of each entry, with an initial for the digest.
func entries(t *testing.T, d *layout.Dir, initials map[digest.Digest]string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(d.Path(), "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, part := range strings.Split(string(b), `{"mediaType":"application/vnd.oci.image.manifest.v1+json"`)[1:] {
		_, dgst, _ := strings.Cut(part, `"digest":"`)
		_, tag, _ := strings.Cut(part, `ref.name":"`)
		tag, _, _ = strings.Cut(tag, `"`)
		list = append(list, initials[digest.Digest(dgst[:71])]+":"+tag)
	}
	return strings.Join(list, " ")
}

func TestDirMovesTags(t *testing.T) {
	d, a := pushed(t, 1)
	b := storetest.Artifact(t, 2)
	if _, err := layout.Push(t.Context(), d, b, layout.PushOptions{}); err != nil {
		t.Fatal(err)
	}
	initials := map[digest.Digest]string{a.Digest: "a", b.Digest: "b"}
	steps := []struct {
		a    *layout.Artifact
		tags []string
		want string
	}{
		{a, nil, "a: b:"},
		{a, []string{"v1"}, "a:v1 b:"},
		{a, []string{"v1"}, "a:v1 b:"},
		{a, nil, "a:v1 b:"},
		{a, []string{"x", "v1", "y"}, "a:v1 b: a:x a:y"},
		{b, []string{"x"}, "a:v1 b:x a:y"},
		{b, []string{"v1", "y"}, "a: b:x b:v1 b:y"},
		{a, []string{"y", "y"}, "a:y b:x b:v1"},
	}
	for _, s := range steps {
		if err := d.PutManifest(t.Context(), s.a.Descriptor, s.a.Manifest, layout.PutOptions{Tags: s.tags}); err != nil {
			t.Fatal(err)
		}
		if got := entries(t, d, initials); got != s.want {
			t.Errorf("%s gets %q: got %q, want %q", initials[s.a.Digest], s.tags, got, s.want)
		}
	}
}

func TestDirWaitsForWhoeverWritesTheIndex(t *testing.T) {
	d, a := pushed(t, 1)
	name := filepath.Join(d.Path(), "index.json")
	other, err := place.Create(name, place.Options{Replace: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if err := d.PutManifest(ctx, a.Descriptor, a.Manifest, layout.PutOptions{Tags: []string{"v1"}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want that it waits", err)
	}
	done := make(chan error)
	go func() {
		done <- d.PutManifest(t.Context(), a.Descriptor, a.Manifest, layout.PutOptions{Tags: []string{"v1"}})
	}()
	time.Sleep(20 * time.Millisecond)
	index := `{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"` + string(a.Digest) + `","size":584,` +
		`"annotations":{"org.opencontainers.image.ref.name":"theirs"}}]}`
	if _, err := other.WriteAt([]byte(index), 0); err != nil {
		t.Fatal(err)
	}
	if err := other.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{"theirs", "v1"} {
		if _, err := d.Resolve(t.Context(), tag); err != nil {
			t.Errorf("%s: %v", tag, err)
		}
	}
}

func TestDirWaitsForWhoeverPushesTheSameBlob(t *testing.T) {
	d, _ := pushed(t, 1)
	b, desc := storetest.Blob(9, 1000)
	name := filepath.Join(d.Path(), "blobs", "sha256", desc.Digest.Encoded())
	other, err := place.Create(name, place.Options{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		done <- d.Push(t.Context(), layout.Layer{Descriptor: desc, Open: func(context.Context, int64) (io.ReadCloser, error) {
			return nil, errors.New("reads what another process has pushed")
		}}, layout.Watch{})
	}()
	time.Sleep(20 * time.Millisecond)
	if _, err := other.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
	if err := other.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	got, err := layout.ReadBlob(t.Context(), d, desc, 1000)
	if err != nil || !bytes.Equal(got, b) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

// ours is how a journal begins that says whose the partial beside it is.
const ours = "carton-oci partial\n"

// A process that was killed while it made the folder.
func TestDirFinishesAHalfMadeLayout(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "layout")
	writeTree(t, dir, map[string]string{
		"blobs/sha256/x": "", "index.json": `{"schemaVersion":2,"manifests":[]}`, "oci-layout.partial": "{",
		"oci-layout.partial.journal": ours, "index.json.partial": "", "index.json.partial.journal": "",
	})
	if _, err := layout.OpenDir(dir); !errors.Is(err, layout.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	a := storetest.Artifact(t, 1)
	if _, err := layout.Push(t.Context(), createDir(t, dir), a, layout.PushOptions{Tags: []string{"v1"}}); err != nil {
		t.Fatal(err)
	}
	wantArtifact(t, dir, "v1", a)
}

// What a killed process left behind is in nobody's way.
func TestDirTakesOverWhatADeadProcessLeft(t *testing.T) {
	d, a := pushed(t, 1)
	b, desc := storetest.Blob(9, 1000)
	writeTree(t, d.Path(), map[string]string{
		"index.json.partial": "half of", "blobs/sha256/" + desc.Digest.Encoded() + ".partial": strings.Repeat("x", 5000),
		"index.json.partial.journal": ours, "blobs/sha256/" + desc.Digest.Encoded() + ".partial.journal": ours,
		// It was killed right after the rename.
		"blobs/sha256/" + a.Layers[0].Digest.Encoded() + ".partial.journal": ours,
	})
	if err := d.Push(t.Context(), storetest.Layer(desc, b), layout.Watch{}); err != nil {
		t.Error(err)
	}
	if err := d.PutManifest(t.Context(), a.Descriptor, a.Manifest, layout.PutOptions{Tags: []string{"v1"}}); err != nil {
		t.Error(err)
	}
	for _, name := range files(t, d.Path()) {
		if strings.Contains(name, "partial") {
			t.Errorf("%s is left", name)
		}
	}
	if got, err := layout.ReadBlob(t.Context(), d, desc, 1000); err != nil || !bytes.Equal(got, b) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

// What a folder's name alone stands for, and what an error lists.
func TestDirOnlyManifest(t *testing.T) {
	const one, two = `{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:` + sixtyFour + `1","size":1`,
		`{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:` + sixtyFour + `2","size":1`
	tagged := func(entry, tag string) string {
		return entry + `,"annotations":{"org.opencontainers.image.ref.name":"` + tag + `"}}`
	}
	for name, c := range map[string]struct{ manifests, only, hint string }{
		"nothing":             {"", "", ""},
		"no tag":              {one + "}", "sha256:" + sixtyFour + "1", "it has sha256:" + sixtyFour + "1"},
		"one tag":             {tagged(one, "v1"), "v1", "it has v1"},
		"a tag that is none":  {tagged(one, "$(reboot) x"), "sha256:" + sixtyFour + "1", "it has sha256:" + sixtyFour + "1"},
		"two tags of one":     {tagged(one, "a") + "," + tagged(one, "b"), "sha256:" + sixtyFour + "1", "it has a, b"},
		"two manifests":       {tagged(one, "a") + "," + two + "}", "", "it has a, sha256:" + sixtyFour + "2"},
		"a tag for the shell": {tagged(one, "a/b:c"), "a/b:c", "it has a/b:c"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{
				"oci-layout": `{"imageLayoutVersion":"1.0.0"}`, "index.json": `{"schemaVersion":2,"manifests":[` + c.manifests + `]}`,
			} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			d, err := layout.OpenDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			desc, err := d.Resolve(t.Context(), "")
			only := desc.Annotations[ocispec.AnnotationRefName]
			if only == "" {
				only = string(desc.Digest)
			}
			if only != c.only || (c.only == "") != errors.Is(err, layout.ErrNotFound) {
				t.Errorf("got %q, %v, want %q", only, err, c.only)
			}
			_, err = d.Resolve(t.Context(), "latest")
			if got := fmt.Sprint(hint.Of(err)); !errors.Is(err, layout.ErrNotFound) || strings.Trim(got, "[]") != c.hint {
				t.Errorf("got %v with the hint %q, want %q", err, got, c.hint)
			}
		})
	}
}

const sixtyFour = "000000000000000000000000000000000000000000000000000000000000000"
