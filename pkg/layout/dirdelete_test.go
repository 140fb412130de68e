package layout_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/layout/storetest"
)

// blobNames are the blobs of a folder.
func blobNames(t *testing.T, d *layout.Dir) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(d.Path(), "blobs", "sha256"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// pushTo pushes an artifact into a folder.
func pushTo(t *testing.T, d *layout.Dir, a *layout.Artifact, tags ...string) {
	t.Helper()
	if _, err := layout.Push(t.Context(), d, a, layout.PushOptions{Tags: tags}); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, d *layout.Dir, dgst digest.Digest) {
	t.Helper()
	if err := d.Delete(t.Context(), string(dgst), layout.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// A manifest takes its blobs along, and none that another one needs, whatever lists it.
func TestDeleteInADir(t *testing.T) {
	d, gone := pushed(t, 1, "v1", "v2")
	remove(t, d, gone.Digest)
	if names := blobNames(t, d); len(names) != 0 {
		t.Errorf("got %q, want nothing", names)
	}
	pushTo(t, d, gone, "v1")
	stays := storetest.Artifact(t, 2)
	pushTo(t, d, stays, "v3")
	// An index that lists it, and a referrer of it.
	index := fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"manifests":[{"mediaType":%q,"digest":%q,"size":%d}]}`,
		ocispec.MediaTypeImageIndex, gone.MediaType, gone.Digest, gone.Size)
	at := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageIndex, Digest: digest.FromString(index), Size: int64(len(index))}
	if err := d.PutManifest(t.Context(), at, []byte(index), layout.PutOptions{Tags: []string{"multi"}}); err != nil {
		t.Fatal(err)
	}
	signature := storetest.Referrer(t, gone.Descriptor, "application/vnd.example.one", 9)
	pushTo(t, d, signature)
	remove(t, d, gone.Digest) // its entry goes, and nothing that the index needs
	if _, err := layout.ReadBlob(t.Context(), d, gone.Layers[0].Descriptor, 1<<20); err != nil {
		t.Error(err)
	}
	err := d.Delete(t.Context(), string(gone.Digest), layout.DeleteOptions{})
	if !errors.Is(err, layout.ErrUnsupported) || !strings.Contains(err.Error(), "part of an index") {
		t.Errorf("a manifest of an index: got %v", err)
	}
	remove(t, d, at.Digest)
	// The referrer names it as its subject, and needs nothing of it.
	if _, err := d.Resolve(t.Context(), string(gone.Digest)); !errors.Is(err, layout.ErrNotFound) {
		t.Errorf("got %v, want that it went with the index", err)
	}
	want := []string{stays.Digest.Encoded(), signature.Digest.Encoded()}
	for _, l := range append(append(slices.Clone(stays.Layers), stays.Config, signature.Config), signature.Layers...) {
		want = append(want, l.Digest.Encoded())
	}
	slices.Sort(want)
	if got := blobNames(t, d); !slices.Equal(got, slices.Compact(want)) {
		t.Errorf("got the blobs %q, want %q", got, want)
	}
}

// What a damaged or unknown neighbour names is kept; of one that can't be read at all
// nobody knows what it names, and nothing is deleted.
func TestDeleteBesideWhatIsBroken(t *testing.T) {
	shared := storetest.Artifact(t, 1)
	needed := shared.Layers[0].Digest
	for name, c := range map[string]struct {
		text string
		err  error
	}{
		"no JSON":            {text: "config " + string(needed), err: nil},
		"of no kind":         {text: fmt.Sprintf(`{"blobs":[{"digest":%q}]}`, needed)},
		"a damaged manifest": {text: fmt.Sprintf(`{"schemaVersion":2,"layers":[{"digest":%q}]}`, needed)},
		"too large":          {text: strings.Repeat(" ", layout.MaxManifestBytes+1), err: layout.ErrLimit},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := pushed(t, 1, "v1")
			other := storetest.Artifact(t, 2)
			pushTo(t, d, other, "v2")
			path := filepath.Join(d.Path(), "blobs", "sha256", other.Digest.Encoded())
			if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
				t.Fatal(err)
			}
			err := d.Delete(t.Context(), string(shared.Digest), layout.DeleteOptions{})
			if !errors.Is(err, c.err) {
				t.Fatalf("got %v, want %v", err, c.err)
			}
			if _, err := d.Stat(t.Context(), needed); err != nil {
				t.Errorf("what another needs: %v", err)
			}
			_, err = d.Resolve(t.Context(), "v1")
			if gone := errors.Is(err, layout.ErrNotFound); gone != (c.err == nil) {
				t.Errorf("after %v: got %v", c.err, err)
			}
		})
	}
}

// A manifest of a form that is not known takes nothing along but itself: what it names
// may be its subject, which index.json need not list.
func TestDeleteOfAnUnknownForm(t *testing.T) {
	d, subject := pushed(t, 1, "v1")
	signature := fmt.Appendf(nil, `{"artifactType": "a/b", "blobs": [], "subject": {"digest": %q}}`, subject.Digest)
	dgst := digest.FromBytes(signature)
	index := fmt.Appendf(nil, `{"schemaVersion": 2, "manifests": [{"mediaType": "application/vnd.oci.artifact.manifest.v1+json", "digest": %q, "size": %d}]}`,
		dgst, len(signature))
	for name, content := range map[string][]byte{"index.json": index, "blobs/sha256/" + dgst.Encoded(): signature} {
		if err := os.WriteFile(filepath.Join(d.Path(), filepath.FromSlash(name)), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before := blobNames(t, d)
	remove(t, d, dgst)
	if got, want := len(blobNames(t, d)), len(before)-1; got != want {
		t.Errorf("%d blobs are left, want %d", got, want)
	}
	if _, _, err := d.ResolveManifest(t.Context(), string(subject.Digest)); err != nil {
		t.Error(err)
	}
}

// Whoever pushes while somebody deletes has all blobs when the push is done, or an error.
func TestDeleteWhileOthersPush(t *testing.T) {
	d, first := pushed(t, 1, "v0")
	done := make(chan struct{})
	var workers sync.WaitGroup
	workers.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if err := d.Delete(t.Context(), string(first.Digest), layout.DeleteOptions{}); err != nil && !errors.Is(err, layout.ErrNotFound) {
				t.Error(err)
				return
			}
		}
	})
	whole := 0
	for range 60 {
		a := storetest.Artifact(t, 1)
		_, err := layout.Push(t.Context(), d, a, layout.PushOptions{Tags: []string{"v1"}})
		if err != nil && !errors.Is(err, layout.ErrNotFound) {
			t.Error(err)
		}
		if err == nil {
			whole++
		}
	}
	close(done)
	workers.Wait()
	other, err := layout.NewArtifact(layout.ArtifactSpec{ArtifactType: "application/vnd.example.other", Config: first.Config, Layers: first.Layers})
	if err != nil {
		t.Fatal(err)
	}
	pushTo(t, d, other, "v2")
	remove2 := func() error { return d.Delete(t.Context(), string(first.Digest), layout.DeleteOptions{}) }
	if err := remove2(); err != nil && !errors.Is(err, layout.ErrNotFound) {
		t.Error(err)
	}
	for _, l := range other.Layers {
		if _, err := layout.ReadBlob(t.Context(), d, l.Descriptor, 1<<20); err != nil {
			t.Error(err)
		}
	}
	if whole == 0 {
		t.Log("no push was quick enough")
	}
}

// deleting is a folder in which somebody deletes something at the worst moment.
type deleting struct {
	*layout.Dir
	delete func()
}

func (d *deleting) PutManifest(ctx context.Context, desc ocispec.Descriptor, content []byte, opts layout.PutOptions) error {
	if d.delete != nil {
		d.delete()
		d.delete = nil
	}
	return d.Dir.PutManifest(ctx, desc, content, opts)
}

// What a push found there, and somebody deletes before its manifest is there, is pushed.
func TestPushBringsWhatIsDeletedMeanwhile(t *testing.T) {
	for name, after := range map[string]*layout.PushResult{"there": nil, "brought before": {}} {
		t.Run(name, func(t *testing.T) {
			d, first := pushed(t, 1, "v1")
			if after != nil {
				after.Config.Digest = first.Config.Digest
				for _, l := range first.Layers {
					after.Layers = append(after.Layers, layout.LayerStatus{Digest: l.Digest})
				}
			}
			other, err := layout.NewArtifact(layout.ArtifactSpec{ArtifactType: "application/vnd.example.other", Config: first.Config, Layers: first.Layers})
			if err != nil {
				t.Fatal(err)
			}
			s := &deleting{d, func() { remove(t, d, first.Digest) }}
			if _, err := layout.Push(t.Context(), s, other, layout.PushOptions{Tags: []string{"v2"}, After: after}); err != nil {
				t.Fatal(err)
			}
			for _, l := range append(other.Layers, other.Config) {
				if _, err := layout.ReadBlob(t.Context(), d, l.Descriptor, 1<<20); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// An image layout of one artifact is one of one artifact, whatever refers to it.
func TestOnlyWithReferrers(t *testing.T) {
	d, a := pushed(t, 1, "v1")
	signature := storetest.Referrer(t, a.Descriptor, "application/vnd.example.one", 9)
	pushTo(t, d, signature)
	if desc, err := d.Resolve(t.Context(), ""); err != nil || desc.Digest != a.Digest || desc.Annotations[ocispec.AnnotationRefName] != "v1" {
		t.Errorf("got %v, %v, want the artifact", desc, err)
	}
	if err := d.Delete(t.Context(), "v1", layout.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if desc, err := d.Resolve(t.Context(), ""); err != nil || desc.Digest != a.Digest {
		t.Errorf("without a tag: got %v, %v, want the artifact", desc, err)
	}
	pushTo(t, d, storetest.Artifact(t, 2))
	if _, err := d.Resolve(t.Context(), ""); !errors.Is(err, layout.ErrNotFound) {
		t.Errorf("beside another: got %v, want ErrNotFound", err)
	}
}

// claims is a place that lists what it likes.
type claims struct {
	layout.Fetcher
	list []ocispec.Descriptor
	err  error
}

func (c *claims) Referrers(context.Context, ocispec.Descriptor, string) ([]ocispec.Descriptor, error) {
	return c.list, c.err
}

func (c *claims) FetchManifest(ctx context.Context, desc ocispec.Descriptor) ([]byte, error) {
	if desc.MediaType == "application/vnd.example.unreachable" {
		return nil, errors.New("the network is gone")
	}
	return c.Fetcher.FetchManifest(ctx, desc)
}

func TestReadReferrersEnds(t *testing.T) {
	d, a := pushed(t, 1, "v1")
	signature := storetest.Referrer(t, a.Descriptor, "application/vnd.example.one", 9)
	pushTo(t, d, signature)
	unreachable := signature.Descriptor
	unreachable.MediaType = "application/vnd.example.unreachable"
	large := signature.Descriptor
	large.Size = layout.MaxManifestBytes
	for name, c := range map[string]struct {
		place claims
		says  string
	}{
		"a list that can't be read":  {claims{err: errors.New("no list")}, "no list"},
		"a place that goes away":     {claims{list: []ocispec.Descriptor{signature.Descriptor, unreachable}}, "the network is gone"},
		"more than is held":          {claims{list: slices.Repeat([]ocispec.Descriptor{large}, 17)}, "more than 67108864 bytes"},
		"an index that is an image":  {claims{list: []ocispec.Descriptor{{MediaType: ocispec.MediaTypeImageIndex, Digest: signature.Digest, Size: signature.Size}}}, "has no manifests"},
		"a size that is another one": {claims{list: []ocispec.Descriptor{{MediaType: signature.MediaType, Digest: signature.Digest, Size: 3}}}, "bytes"},
	} {
		c.place.Fetcher = d
		found, left, err := layout.ReadReferrers(t.Context(), &c.place, a.Descriptor, "")
		if text := fmt.Sprint(left, err); len(found) != 0 || !strings.Contains(text, c.says) {
			t.Errorf("%s: got %v and %s, want %q", name, found, text, c.says)
		}
	}
}

func FuzzAddReferrers(f *testing.F) {
	a := storetest.Artifact(f, 1)
	good, _, err := layout.AddReferrers(nil, a.Descriptor)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"schemaVersion":2,"manifests":[{"digest":"x","annotations":{"a":"b"},"more":1}]}`))
	f.Fuzz(func(t *testing.T, index []byte) {
		b, changed, err := layout.AddReferrers(index, a.Descriptor)
		if err != nil {
			return
		}
		x, err := layout.ParseIndex(b)
		if err != nil {
			t.Fatalf("it writes what it does not read: %v: %q", err, b)
		}
		if !slices.ContainsFunc(x.Manifests, func(d ocispec.Descriptor) bool { return d.Digest == a.Digest }) {
			t.Errorf("%q lacks the entry", b)
		}
		if _, again, err := layout.AddReferrers(b, a.Descriptor); err != nil || again {
			t.Errorf("the second time: %v, %v, and the first %v", again, err, changed)
		}
		var before struct {
			Manifests []json.RawMessage `json:"manifests"`
		}
		if json.Unmarshal(index, &before) == nil && len(x.Manifests) < len(before.Manifests) {
			t.Errorf("of %d entries %d are left", len(before.Manifests), len(x.Manifests))
		}
	})
}
