package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/layout"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Artifact returns an artifact of two layers.
func Artifact(t testing.TB, seed byte) *layout.Artifact {
	t.Helper()
	config := []byte(fmt.Sprintf(`{"seed":%d}`, seed))
	spec := layout.ArtifactSpec{
		ArtifactType: "application/vnd.example.v1",
		Config:       layout.Layer{Descriptor: describe(typeConfig, config), Name: "config", Open: Opener(config)},
	}
	for i := range byte(2) {
		b, desc := Blob(2*seed+i, 1000)
		spec.Layers = append(spec.Layers, layout.Layer{Descriptor: desc, Name: fmt.Sprintf("model/%d", i), Open: Opener(b)})
	}
	a, err := layout.NewArtifact(spec)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// pushLayers pushes what the artifact's image manifest lists.
func pushLayers(t *testing.T, s layout.Store, a *layout.Artifact) {
	t.Helper()
	for _, l := range append([]layout.Layer{a.Config}, a.Layers...) {
		if err := s.Push(t.Context(), l, layout.Watch{}); err != nil {
			t.Fatal(err)
		}
	}
}

func wantManifest(t *testing.T, s layout.Store, ref string, a *layout.Artifact) {
	t.Helper()
	desc, err := s.Resolve(t.Context(), ref)
	if err != nil {
		t.Errorf("Resolve %s: %v", ref, err)
		return
	}
	if desc.Digest != a.Digest || desc.Size != a.Size || desc.MediaType != a.MediaType {
		t.Errorf("Resolve %s: got %+v, want %+v", ref, desc, a.Descriptor)
	}
	b, err := s.FetchManifest(t.Context(), desc)
	if err != nil {
		t.Error(err)
	}
	if !bytes.Equal(a.Manifest, b) {
		t.Errorf("got the image manifest %q, want %q", b, a.Manifest)
	}
	both, b, err := s.ResolveManifest(t.Context(), ref)
	if err != nil || both.Digest != desc.Digest || both.Size != desc.Size || both.MediaType != desc.MediaType || !bytes.Equal(a.Manifest, b) {
		t.Errorf("ResolveManifest %s: got %+v, %q and %v, want %+v", ref, both, b, err, desc)
	}
}

func wantNoManifest(t *testing.T, s layout.Store, ref string) {
	t.Helper()
	_, err := s.Resolve(t.Context(), ref)
	_, _, err2 := s.ResolveManifest(t.Context(), ref)
	if !errors.Is(err, layout.ErrNotFound) || !errors.Is(err2, layout.ErrNotFound) {
		t.Errorf("Resolve and ResolveManifest %q: got %v and %v, want ErrNotFound", ref, err, err2)
	}
}

// onlyManifest: a store may know that it has one manifest alone.
func onlyManifest(t *testing.T, s layout.Store) {
	a, other := Artifact(t, 1), Artifact(t, 2)
	put := func(a *layout.Artifact, tags ...string) {
		pushLayers(t, s, a)
		if err := s.PutManifest(t.Context(), a.Descriptor, a.Manifest, layout.PutOptions{Tags: tags}); err != nil {
			t.Fatal(err)
		}
	}
	put(a, "v1")
	if desc, err := s.Resolve(t.Context(), ""); err == nil {
		wantManifest(t, s, "", a)
		if got := desc.Annotations[ocispec.AnnotationRefName]; got != "v1" {
			t.Errorf("its only tag: got %q, want v1", got)
		}
		put(a, "v2")
		if desc, err := s.Resolve(t.Context(), ""); err != nil || desc.Digest != a.Digest || len(desc.Annotations) != 0 {
			t.Errorf("under two tags: got %+v, %v, want no tag", desc, err)
		}
	}
	put(other, "v3")
	wantNoManifest(t, s, "")
}

func manifests(t *testing.T, s layout.Store) {
	a := Artifact(t, 1)
	pushLayers(t, s, a)
	if err := s.PutManifest(t.Context(), a.Descriptor, a.Manifest, layout.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	wantManifest(t, s, string(a.Digest), a)
	if _, err := s.Resolve(t.Context(), "v1"); !errors.Is(err, layout.ErrNotFound) {
		t.Errorf("a tag that was not set: got %v, want ErrNotFound", err)
	}
	if err := s.PutManifest(t.Context(), a.Descriptor, a.Manifest, layout.PutOptions{Tags: []string{"v1", "latest"}}); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{"v1", "latest", string(a.Digest)} {
		wantManifest(t, s, ref, a)
	}
	lying := a.Descriptor
	lying.Size++
	if _, err := s.FetchManifest(t.Context(), lying); err == nil {
		t.Error("fetches a manifest of another size")
	}
}

func tagsMove(t *testing.T, s layout.Store) {
	old, young := Artifact(t, 1), Artifact(t, 2)
	for _, a := range []*layout.Artifact{old, young} {
		pushLayers(t, s, a)
		if err := s.PutManifest(t.Context(), a.Descriptor, a.Manifest, layout.PutOptions{Tags: []string{"v1", "tag-" + a.Digest.Encoded()[:8]}}); err != nil {
			t.Fatal(err)
		}
		wantManifest(t, s, "v1", a)
	}
	wantManifest(t, s, "tag-"+old.Digest.Encoded()[:8], old)
	wantManifest(t, s, string(old.Digest), old)
}

func putOfOtherBytes(t *testing.T, s layout.Store) {
	a, other := Artifact(t, 1), Artifact(t, 2)
	pushLayers(t, s, a)
	pushLayers(t, s, other)
	for name, content := range map[string][]byte{
		"other bytes": other.Manifest, "shorter": a.Manifest[:len(a.Manifest)-1], "nothing": nil,
	} {
		if err := s.PutManifest(t.Context(), a.Descriptor, content, layout.PutOptions{Tags: []string{"v1"}}); !errors.Is(err, layout.ErrDigest) {
			t.Errorf("%s: got %v, want ErrDigest", name, err)
		}
	}
	for _, ref := range []string{"v1", string(a.Digest)} {
		if _, err := s.Resolve(t.Context(), ref); !errors.Is(err, layout.ErrNotFound) {
			t.Errorf("Resolve %s: got %v, want ErrNotFound", ref, err)
		}
	}
}

func noClobber(t *testing.T, s layout.Store) {
	mine, theirs := Artifact(t, 1), Artifact(t, 2)
	put := func(a *layout.Artifact, tags ...string) error {
		pushLayers(t, s, a)
		return s.PutManifest(t.Context(), a.Descriptor, a.Manifest, layout.PutOptions{Tags: tags, NoClobber: true})
	}
	if err := errors.Join(put(theirs, "v1"), put(theirs, "v1", "v2")); err != nil {
		t.Fatalf("tags that are new, or point to it already: %v", err)
	}
	if err := put(mine, "v3", "v1"); !errors.Is(err, layout.ErrTagExists) {
		t.Errorf("got %v, want ErrTagExists", err)
	}
	wantManifest(t, s, "v1", theirs)
	if _, err := s.Resolve(t.Context(), "v3"); !errors.Is(err, layout.ErrNotFound) {
		t.Errorf("a tag moved although another could not: %v", err)
	}
}

func pushesAtOnce(t *testing.T, s layout.Store) {
	var workers sync.WaitGroup
	for i := range 12 {
		b, desc := Blob(byte(i%4), 200_000) // three of each
		workers.Go(func() {
			if err := s.Push(t.Context(), Layer(desc, b), layout.Watch{}); err != nil {
				t.Error(err)
			}
		})
	}
	for i := range 4 {
		a := Artifact(t, byte(100+i))
		workers.Go(func() {
			if _, err := layout.Push(t.Context(), s, a, layout.PushOptions{Tags: []string{fmt.Sprintf("v%d", i), "latest"}}); err != nil {
				t.Error(err)
			}
		})
	}
	workers.Wait()
	for i := range 4 {
		b, desc := Blob(byte(i), 200_000)
		wantBlob(t, s, b, desc)
		wantManifest(t, s, fmt.Sprintf("v%d", i), Artifact(t, byte(100+i)))
	}
	if _, err := s.Resolve(t.Context(), "latest"); err != nil {
		t.Error(err)
	}
}

func wholeArtifact(t *testing.T, s layout.Store) {
	a := Artifact(t, 1)
	first, err := layout.Push(t.Context(), s, a, layout.PushOptions{Tags: []string{"v1"}})
	if err != nil {
		t.Fatal(err)
	}
	if want := a.Config.Size + 2000; first.BytesUploaded != want {
		t.Errorf("uploaded %d bytes, want %d", first.BytesUploaded, want)
	}
	for i := range a.Layers { // the second time nothing is opened
		a.Layers[i].Open = nil
	}
	a.Config.Open = nil
	second, err := layout.Push(t.Context(), s, a, layout.PushOptions{Tags: []string{"v1"}, NoClobber: true})
	if err != nil {
		t.Fatal(err)
	}
	if second.BytesUploaded != 0 || second.Layers[1].Status != layout.Exists {
		t.Errorf("the second time: got %+v", second)
	}
	wantManifest(t, s, "v1", a)
	other := Artifact(t, 2)
	if _, err := layout.Push(t.Context(), s, other, layout.PushOptions{Tags: []string{"v1"}, NoClobber: true}); !errors.Is(err, layout.ErrTagExists) {
		t.Errorf("got %v, want ErrTagExists", err)
	}
	wantNoBlob(t, s, other.Layers[0].Descriptor)
}
