package layout_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/layout/storetest"
	"github.com/google/go-cmp/cmp"
	orascontent "oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/oci"
)

func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.Command(testenv.Program(t, program), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v: %s", program, args, err, out)
	}
	return string(out)
}

// wantArtifact wants the folder to hold the artifact whole under the tag.
func wantArtifact(t *testing.T, path, tag string, a *layout.Artifact) {
	t.Helper()
	d, err := layout.OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	desc, err := d.Resolve(t.Context(), tag)
	if err != nil {
		t.Fatal(err)
	}
	if desc.Digest != a.Digest {
		t.Errorf("%s is %s, want %s", tag, desc.Digest, a.Digest)
	}
	_, m, err := layout.ReadManifest(t.Context(), d, desc)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range append(m.Layers, m.Config) {
		if _, err := layout.ReadBlob(t.Context(), d, l, 1<<20); err != nil {
			t.Error(err)
		}
	}
}

func TestSkopeoReadsOurFolders(t *testing.T) {
	skopeo := testenv.Program(t, "skopeo")
	d, a := pushed(t, 1, "v1", "latest")
	other := storetest.Artifact(t, 2)
	if _, err := layout.Push(t.Context(), d, other, layout.PushOptions{Tags: []string{"latest"}}); err != nil {
		t.Fatal(err)
	}
	for tag, want := range map[string]*layout.Artifact{"v1": a, "latest": other} {
		out, err := exec.Command(skopeo, "inspect", "--raw", "oci:"+d.Path()+":"+tag).Output()
		if err != nil {
			t.Fatalf("%s: %v", tag, err)
		}
		if diff := cmp.Diff(string(want.Manifest), string(out)); diff != "" {
			t.Error(diff)
		}
		// Its copy is the same artifact, and ours to read.
		to := filepath.Join(t.TempDir(), "copy")
		run(t, "skopeo", "--insecure-policy", "copy", "oci:"+d.Path()+":"+tag, "oci:"+to+":"+tag)
		wantArtifact(t, to, tag, want)
	}
}

func TestSkopeoAndWeWriteOneFolder(t *testing.T) {
	testenv.Program(t, "skopeo")
	from, a := pushed(t, 1, "v1")
	to, b := pushed(t, 2, "v2")
	run(t, "skopeo", "--insecure-policy", "copy", "oci:"+from.Path()+":v1", "oci:"+to.Path()+":v1")
	c := storetest.Artifact(t, 3)
	if _, err := layout.Push(t.Context(), to, c, layout.PushOptions{Tags: []string{"v3"}}); err != nil {
		t.Fatal(err)
	}
	wantArtifact(t, to.Path(), "v1", a)
	wantArtifact(t, to.Path(), "v2", b)
	wantArtifact(t, to.Path(), "v3", c)
}

func TestOrasReadsOurFolders(t *testing.T) {
	d, a := pushed(t, 1, "v1")
	s, err := oci.NewFromFS(t.Context(), os.DirFS(d.Path()))
	if err != nil {
		t.Fatal(err)
	}
	desc, err := s.Resolve(t.Context(), "v1")
	if err != nil || desc.Digest != a.Digest {
		t.Fatalf("got %v, %v, want %s", desc, err, a.Digest)
	}
	b, err := orascontent.FetchAll(t.Context(), s, desc)
	if err != nil || string(b) != string(a.Manifest) {
		t.Errorf("got %s, %v", b, err)
	}
	below, err := orascontent.Successors(t.Context(), s, desc)
	if err != nil || len(below) != 3 {
		t.Fatalf("got %v, %v, want the config and two layers", below, err)
	}
	for _, l := range below {
		if _, err := orascontent.FetchAll(t.Context(), s, l); err != nil {
			t.Error(err)
		}
	}
}

func TestWeReadFoldersOfOras(t *testing.T) {
	path := t.TempDir()
	s, err := oci.New(path)
	if err != nil {
		t.Fatal(err)
	}
	a := storetest.Artifact(t, 1)
	if _, err := layout.Push(t.Context(), layout.FromTarget(s), a, layout.PushOptions{Tags: []string{"v1"}}); err != nil {
		t.Fatal(err)
	}
	wantArtifact(t, path, "v1", a)
	// And write to them.
	d, err := layout.OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	b := storetest.Artifact(t, 2)
	if _, err := layout.Push(t.Context(), d, b, layout.PushOptions{Tags: []string{"v2"}}); err != nil {
		t.Fatal(err)
	}
	again, err := oci.New(path)
	if err != nil {
		t.Fatal(err)
	}
	for tag, want := range map[string]*layout.Artifact{"v1": a, "v2": b} {
		if desc, err := again.Resolve(t.Context(), tag); err != nil || desc.Digest != want.Digest {
			t.Errorf("oras: %s is %v, %v, want %s", tag, desc.Digest, err, want.Digest)
		}
	}
}
