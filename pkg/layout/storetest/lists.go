package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Referrer returns an artifact of one layer that names a subject.
func Referrer(t testing.TB, subject ocispec.Descriptor, artifactType string, seed byte) *layout.Artifact {
	t.Helper()
	b, desc := Blob(seed, 100)
	a, err := layout.NewArtifact(layout.ArtifactSpec{
		ArtifactType: artifactType, Subject: &subject,
		Config:      layout.Layer{Descriptor: describe(typeConfig, []byte("{}")), Open: Opener([]byte("{}"))},
		Layers:      []layout.Layer{{Descriptor: desc, Open: Opener(b)}},
		Annotations: map[string]string{"org.example.seed": fmt.Sprint(seed)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func put(t *testing.T, s layout.Store, a *layout.Artifact, tags ...string) {
	t.Helper()
	pushLayers(t, s, a)
	if err := s.PutManifest(t.Context(), a.Descriptor, a.Manifest, layout.PutOptions{Tags: tags}); err != nil {
		t.Fatal(err)
	}
}

// listTags returns the tags that were given, sorted, false where a store can't tell.
func listTags(t *testing.T, s layout.Store) ([]string, bool) {
	t.Helper()
	var all []string
	for tag, err := range s.Tags(t.Context()) {
		if errors.Is(err, layout.ErrUnsupported) {
			return nil, false
		}
		if err != nil {
			t.Fatal(err)
		}
		if !layout.IsReferrersTag(tag) { // which a store may keep its lists under
			all = append(all, tag)
		}
	}
	slices.Sort(all)
	return all, true
}

func tags(t *testing.T, s layout.Store) {
	a := Artifact(t, 1)
	put(t, s, a)
	if got, ok := listTags(t, s); ok && len(got) != 0 {
		t.Errorf("got the tags %q of what has none", got)
	}
	var want []string
	for i := range 12 {
		want = append(want, fmt.Sprintf("v%02d", i))
	}
	put(t, s, a, want...)
	got, ok := listTags(t, s)
	if ok && !slices.Equal(got, want) {
		t.Errorf("got the tags %q, want %q", got, want)
	}
	for _, err := range s.Tags(t.Context()) { // who has enough stops
		if err != nil && !errors.Is(err, layout.ErrUnsupported) {
			t.Error(err)
		}
		break
	}
}

// wantReferrers wants just these to be listed with a subject, in any order.
func wantReferrers(t *testing.T, s layout.Store, subject ocispec.Descriptor, artifactType string, want ...*layout.Artifact) {
	t.Helper()
	got, left, err := layout.ReadReferrers(t.Context(), s, subject, artifactType)
	if err != nil || len(left) > 0 {
		t.Errorf("referrers of %q: %v, and left %v", artifactType, err, left)
	}
	if len(got) != len(want) {
		t.Errorf("got %d referrers of %q, want %d", len(got), artifactType, len(want))
	}
	for _, a := range want {
		if !slices.ContainsFunc(got, func(r layout.Referrer) bool {
			return r.Digest == a.Digest && r.Size == a.Size && r.MediaType == a.MediaType && r.ArtifactType == a.ArtifactType &&
				r.Annotations["org.example.seed"] != "" && r.Manifest.Subject.Digest == subject.Digest
		}) {
			t.Errorf("%s is not among the referrers of %q: %+v", a.Digest, artifactType, got)
		}
	}
}

func referrers(t *testing.T, s layout.Store) {
	const one, two = "application/vnd.example.one", "application/vnd.example.two"
	subject, other := Artifact(t, 1), Artifact(t, 2)
	put(t, s, subject, "v1")
	put(t, s, other, "v2")
	wantReferrers(t, s, subject.Descriptor, "")
	first, second, third := Referrer(t, subject.Descriptor, one, 11), Referrer(t, subject.Descriptor, two, 12), Referrer(t, other.Descriptor, one, 13)
	for _, a := range []*layout.Artifact{first, second, third, first} { // one of them twice
		put(t, s, a)
	}
	wantReferrers(t, s, subject.Descriptor, "", first, second)
	wantReferrers(t, s, subject.Descriptor, one, first)
	wantReferrers(t, s, subject.Descriptor, "application/vnd.example.none")
	wantReferrers(t, s, other.Descriptor, "", third)
	wantReferrers(t, s, first.Descriptor, "")
	listed, err := s.Referrers(t.Context(), subject.Descriptor, one)
	if err != nil || len(listed) != 1 || listed[0].ArtifactType != one || listed[0].Annotations["org.example.seed"] != "11" {
		t.Errorf("got the list %+v, %v, want one with its type and annotations", listed, err)
	}
	wantManifest(t, s, "v1", subject)
}

func referrersAtOnce(t *testing.T, s layout.Store) {
	subject := Artifact(t, 1)
	put(t, s, subject, "v1")
	var want []*layout.Artifact
	for i := range byte(8) {
		want = append(want, Referrer(t, subject.Descriptor, "application/vnd.example.one", 20+i))
		pushLayers(t, s, want[i])
	}
	var workers sync.WaitGroup
	for _, a := range want {
		workers.Go(func() {
			if err := s.PutManifest(t.Context(), a.Descriptor, a.Manifest, layout.PutOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	workers.Wait()
	wantReferrers(t, s, subject.Descriptor, "", want...)
}

// deletes reports whether a store deletes what a reference names.
func deletes(t *testing.T, s layout.Store, reference string) bool {
	t.Helper()
	err := s.Delete(t.Context(), reference, layout.DeleteOptions{})
	if err != nil && !errors.Is(err, layout.ErrUnsupported) {
		t.Fatalf("Delete %s: %v", reference, err)
	}
	return err == nil
}

// wantGone wants references to name nothing, nor to be there to delete.
func wantGone(t *testing.T, s layout.Store, references ...string) {
	t.Helper()
	for _, ref := range references {
		if _, err := s.Resolve(t.Context(), ref); !errors.Is(err, layout.ErrNotFound) {
			t.Errorf("Resolve %s: got %v, want ErrNotFound", ref, err)
		}
		if err := s.Delete(t.Context(), ref, layout.DeleteOptions{}); !errors.Is(err, layout.ErrNotFound) && !errors.Is(err, layout.ErrUnsupported) {
			t.Errorf("Delete %s: got %v, want ErrNotFound", ref, err)
		}
	}
}

func deleteTag(t *testing.T, s layout.Store) {
	a := Artifact(t, 1)
	put(t, s, a, "v1", "v2")
	wantGone(t, s, "v3")
	if !deletes(t, s, "v1") {
		wantManifest(t, s, "v1", a)
		return
	}
	wantGone(t, s, "v1")
	wantManifest(t, s, "v2", a)
	if !deletes(t, s, "v2") {
		t.Error("deletes one tag and not another")
	}
	wantGone(t, s, "v2")
	wantManifest(t, s, string(a.Digest), a)
	for _, l := range a.Layers {
		if _, err := s.Stat(t.Context(), l.Digest); err != nil {
			t.Errorf("a blob of what lost its tags: %v", err)
		}
	}
	put(t, s, a, "v1")
	wantManifest(t, s, "v1", a)
}

func deleteManifest(t *testing.T, s layout.Store) {
	gone, stays := Artifact(t, 1), Artifact(t, 2)
	shares := Artifact(t, 3)
	shares, err := layout.NewArtifact(layout.ArtifactSpec{
		ArtifactType: shares.ArtifactType, Config: shares.Config, Layers: []layout.Layer{gone.Layers[0], shares.Layers[0]},
	})
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, gone, "v1", "v2")
	put(t, s, stays, "v3")
	put(t, s, shares)
	signature := Referrer(t, stays.Descriptor, "application/vnd.example.one", 9)
	put(t, s, signature)
	wantGone(t, s, string(digest.FromString("nothing")))
	if _, ok := listTags(t, s); ok {
		err := s.Delete(t.Context(), string(gone.Digest), layout.DeleteOptions{KeepTagged: true})
		if !errors.Is(err, layout.ErrTagExists) && !errors.Is(err, layout.ErrUnsupported) {
			t.Errorf("of a manifest with tags: got %v, want ErrTagExists", err)
		}
		wantManifest(t, s, "v1", gone)
	}
	if !deletes(t, s, string(gone.Digest)) {
		wantManifest(t, s, "v1", gone)
		return
	}
	wantGone(t, s, string(gone.Digest), "v1", "v2")
	wantManifest(t, s, "v3", stays)
	wantManifest(t, s, string(shares.Digest), shares)
	for _, l := range append(slices.Clone(stays.Layers), shares.Layers...) {
		if _, err := s.Stat(t.Context(), l.Digest); err != nil {
			t.Errorf("a blob that others need: %v", err)
		}
	}
	if all, ok := listTags(t, s); ok && !slices.Equal(all, []string{"v3"}) {
		t.Errorf("got the tags %q, want one", all)
	}
	if err := s.Delete(t.Context(), string(signature.Digest), layout.DeleteOptions{KeepTagged: true}); err != nil {
		t.Errorf("of a manifest without tags: %v", err)
	}
	wantReferrers(t, s, stays.Descriptor, "")
	put(t, s, gone, "v1")
	wantManifest(t, s, "v1", gone)
}
