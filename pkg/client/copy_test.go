package client

import (
	"bytes"
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/registry"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// documented is a carton with a README.
func documented() *cartontest.Source {
	return cartontest.New(map[string][]byte{
		"model/a.bin": bytes.Repeat([]byte("a"), 3<<20), "model/b.bin": bytes.Repeat([]byte("b"), 40_000), "model/c.json": []byte("{}"),
		"misc/README.md": []byte("# A model\n"), "model/empty.json": {}, carton.IndexName: []byte("tensor = []\n"),
	}, map[string]string{"model/l.json": "c.json"})
}

// copied are artifacts in every form, none of which a push makes by itself.
var copied = map[string]PushOptions{
	"default":     {},
	"annotated":   {Mapping: convert.Options{Annotations: map[string]string{"org.example": "x", ocispec.AnnotationTitle: "another"}}},
	"cncf":        {Mapping: convert.Options{MediaTypes: convert.FamilyCNCF}},
	"draft":       {Mapping: convert.Options{MediaTypes: convert.FamilyDraft}},
	"tar":         {Mapping: convert.Options{Layers: convert.FormTar}},
	"zstd":        {Mapping: convert.Options{Compress: convert.CompressZstd, BundleBelow: 10_000}},
	"tar gzip":    {Mapping: convert.Options{Layers: convert.FormTar, Compress: convert.CompressGzip, BundleBelow: 10_000}},
	"readme":      {Mapping: convert.Options{Readme: true}},
	"created":     {Mapping: convert.Options{Created: time.Unix(1700000000, 0)}},
	"compat":      {Mapping: convert.Options{Compat: convert.CompatImageConfig}},
	"image alone": {Mapping: convert.Options{Compat: convert.CompatImage}},
}

// sameManifest reports whether two references stand for one image manifest, and
// the second pulls.
func sameManifest(t *testing.T, from, to string) {
	t.Helper()
	a, err := fresh().Resolve(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	b, err := fresh().Resolve(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	if a.Digest != b.Digest || a.Size != b.Size || a.MediaType != b.MediaType {
		t.Errorf("%s is %s, its copy %s is %s", from, a.Digest, to, b.Digest)
	}
	if _, err := fresh().Pull(t.Context(), to, PullOptions{Output: filepath.Join(t.TempDir(), "back.carton")}); err != nil {
		t.Errorf("pull of the copy %s: %v", to, err)
	}
}

// A push from an artifact copies it: between registries, within one, and to and
// from a folder, whatever its form.
func TestACopyIsACopy(t *testing.T) {
	testenv.Heavy(t)
	for name, opts := range copied {
		t.Run(name, func(t *testing.T) {
			here, there := registrytest.New(t, registrytest.Config{}), registrytest.New(t, registrytest.Config{})
			first := here.Host + "/org/m:1"
			if _, err := fresh().PushSource(t.Context(), documented(), "m", first, opts); err != nil {
				t.Fatal(err)
			}
			lay := "oci:" + filepath.Join(t.TempDir(), "lay")
			at := first
			for _, to := range []string{
				here.Host + "/org/m:2", here.Host + "/other/m:1", there.Host + "/org/m:1", lay + ":1", lay + ":2", there.Host + "/third/m:1",
			} {
				result, err := fresh(Options{Registry: registry.Options{StateDir: t.TempDir()}}).Push(t.Context(), at, to, PushOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if s := result.Source; s == nil || !s.Copied || s.Digest != result.Digest || s.Reference != at {
					t.Errorf("%s to %s: got %+v, want a copy", at, to, s)
				}
				sameManifest(t, first, to)
				at = to
			}
		})
	}
}

// A copy takes nothing through this machine that need not come.
func TestWhatTravelsForACopy(t *testing.T) {
	const model = 3<<20 + 40_000
	small := func(n int64) bool { return n < 60_000 }
	once := func(n int64) bool { return n > model && n < model+80_000 }
	for _, form := range []convert.Form{convert.FormRaw, convert.FormTar} {
		t.Run(string(form), func(t *testing.T) {
			here, there := registrytest.New(t, registrytest.Config{}), registrytest.New(t, registrytest.Config{})
			from := here.Host + "/org/m:1"
			if _, err := fresh().PushSource(t.Context(), documented(), "m", from, PushOptions{Mapping: convert.Options{Layers: form}}); err != nil {
				t.Fatal(err)
			}
			// What is mounted or there is believed by its digest where that is a member's
			// hash, and read where it is a tar's.
			read := small
			if form == convert.FormTar {
				read = once
			}
			lay := "oci:" + filepath.Join(t.TempDir(), "lay") + ":1"
			for _, c := range []struct {
				what, to string
				down     func(int64) bool
				status   string
			}{
				{"within a repository", here.Host + "/org/m:2", read, "exists"},
				{"within a registry", here.Host + "/other/m:1", read, "mounted"},
				{"to another registry", there.Host + "/org/m:1", once, "uploaded"},
				{"again", there.Host + "/org/m:1", read, "exists"},
				{"to a folder", lay, once, "uploaded"},
			} {
				here.Forget()
				result, err := fresh().Push(t.Context(), from, c.to, PushOptions{})
				if err != nil {
					t.Fatal(err)
				}
				_, down := here.Bytes("GET", "/blobs/")
				if !c.down(down) || result.BytesDownloaded != down {
					t.Errorf("%s: %d bytes came, %d were said", c.what, down, result.BytesDownloaded)
				}
				for _, l := range result.Layers {
					if l.Status != c.status {
						t.Errorf("%s: %q is %s, want %s", c.what, l.Paths, l.Status, c.status)
					}
				}
			}
		})
	}
}

// The image form of a copy is that of the artifact, wherever it is made.
func TestACopyWithItsImage(t *testing.T) {
	testenv.Heavy(t)
	for name, opts := range copied {
		if name == "image alone" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			here, there := registrytest.New(t, registrytest.Config{}), registrytest.New(t, registrytest.Config{})
			from, to := here.Host+"/org/m:1", there.Host+"/org/m:1"
			if _, err := fresh().PushSource(t.Context(), documented(), "m", from, opts); err != nil {
				t.Fatal(err)
			}
			image, err := fresh().Image(t.Context(), from, ImageOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // as after a restart
				there.Forget()
				result, err := fresh().Push(t.Context(), from, to, PushOptions{Mapping: convert.Options{Image: true}, NoClobber: true})
				if err != nil {
					t.Fatal(err)
				}
				if result.Image == nil || result.Image.Digest != image.Digest || !result.Source.Copied {
					t.Errorf("got %+v, want the image %s", result, image.Digest)
				}
				if n := there.Count("HEAD|GET", "/manifests/1-image"); n > 2 { // before all, and before it moves
					t.Errorf("asked for the image form's tag %d times, want twice", n)
				}
				sameManifest(t, from, to)
				sameManifest(t, from+"-image", to+"-image")
				manifests := there.Requests()
				var tags []string
				for _, r := range manifests {
					if r.Method == http.MethodPut && strings.Contains(r.Path, "/manifests/") && !strings.Contains(r.Path, "sha256") {
						tags = append(tags, r.Path[strings.LastIndexByte(r.Path, '/')+1:])
					}
				}
				if !slices.Equal(tags, []string{"1-image", "1"}) {
					t.Errorf("tags moved in the order %q, want the artifact's last", tags)
				}
			}
		})
	}
}

// Whoever asks for another form gets another artifact, and is told.
func TestAnotherFormIsNoCopy(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{})
	first, err := fresh().PushSource(t.Context(), documented(), "m", r.Host+"/m:1", PushOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, mapping := range map[string]convert.Options{
		"layers":      {Layers: convert.FormTar},
		"media types": {MediaTypes: convert.FamilyCNCF},
		"compress":    {Compress: convert.CompressZstd, BundleBelow: 10_000},
		"bundles":     {BundleBelow: 100_000},
		"annotations": {Annotations: map[string]string{"org.example": "x"}},
		"compat":      {Compat: convert.CompatImageConfig},
		"readme":      {Readme: true},
	} {
		result, err := fresh().Push(t.Context(), r.Host+"/m:1", r.Host+"/m:2", PushOptions{Mapping: mapping})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := SourceArtifact{Reference: r.Host + "/m:1", Digest: first.Digest}
		if result.Digest == first.Digest || result.Source == nil || *result.Source != want {
			t.Errorf("%s: got %s of %+v, want another digest", name, result.Digest, result.Source)
		}
	}
	// The form that it has is the same artifact, made again.
	same, err := fresh().Push(t.Context(), r.Host+"/m:1", r.Host+"/m:2", PushOptions{Mapping: convert.Options{Layers: convert.FormRaw}})
	if err != nil || same.Digest != first.Digest || same.Source.Copied {
		t.Errorf("got %+v, %v", same, err)
	}
	// A time of creation is none of the form.
	timed, err := fresh().Push(t.Context(), r.Host+"/m:1", r.Host+"/m:2", PushOptions{Mapping: convert.Options{Created: time.Unix(1, 0)}})
	if err != nil || timed.Digest != first.Digest || !timed.Source.Copied {
		t.Errorf("got %+v, %v", timed, err)
	}
}

// Artifacts of other tools are copied as they are, too.
func TestACopyOfAForeignArtifact(t *testing.T) {
	for _, form := range []convert.Form{convert.FormRaw, convert.FormTar} {
		for _, manifest := range []bool{true, false} {
			s := storeTars(t, convert.Options{})
			if _, err := fresh().PushSource(t.Context(), iris(), "iris", s.Host+"/"+sourceRepo+":1", PushOptions{Mapping: convert.Options{Layers: form}}); err != nil {
				t.Fatal(err)
			}
			_, raw, _ := s.Manifest(sourceRepo, "1")
			s.manifest = ocispec.Manifest{}
			if err := json.Unmarshal(raw, &s.manifest); err != nil {
				t.Fatal(err)
			}
			s.manifest.Annotations = map[string]string{"tool": "another"}
			for i := range s.manifest.Layers {
				delete(s.manifest.Layers[i].Annotations, convert.AnnotationMembers)
			}
			if form == convert.FormTar { // as other tools write them: with modes, owners and times of their own
				s.replace(s.layer(weightsTar), header(t, s.weights(), func(h []byte) {
					copy(h[100:], "0000600")
					copy(h[108:], "0001750")
					copy(h[136:], "14000000000")
				}))
			}
			if !manifest {
				s.manifest.Layers = slices.DeleteFunc(s.manifest.Layers, func(d ocispec.Descriptor) bool {
					return d.Annotations[ocispec.AnnotationTitle] == carton.ManifestName
				})
			}
			s.put()
			ref, other := s.Host+"/"+sourceRepo+":1", registrytest.New(t, registrytest.Config{})
			for _, to := range []string{s.Host + "/other/m:1", other.Host + "/m:1", "oci:" + filepath.Join(t.TempDir(), "lay") + ":1"} {
				if _, err := fresh().Push(t.Context(), ref, to, PushOptions{}); err != nil {
					t.Fatalf("%s, MANIFEST %v, to %s: %v", form, manifest, to, err)
				}
				sameManifest(t, ref, to)
			}
		}
	}
}

// A copy to a digest is one of that artifact or none.
func TestACopyToADigest(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{})
	first, err := fresh().PushSource(t.Context(), documented(), "m", r.Host+"/m:1", PushOptions{Mapping: convert.Options{MediaTypes: convert.FamilyCNCF}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fresh().Push(t.Context(), r.Host+"/m:1", r.Host+"/n@"+first.Digest.String(), PushOptions{}); err != nil {
		t.Error(err)
	}
	other := strings.Repeat("0", 64)
	if _, err := fresh().Push(t.Context(), r.Host+"/m:1", r.Host+"/n@sha256:"+other, PushOptions{}); err == nil || !strings.Contains(err.Error(), first.Digest.String()) {
		t.Errorf("got %v", err)
	}
}

// A carton that was wrapped is more than its artifact, and can't be a copy of it.
func TestAWrappedModelIsNoCopy(t *testing.T) {
	s := storeTars(t, convert.Options{})
	s.manifest.Annotations = nil
	s.manifest.Layers = []ocispec.Descriptor{*s.layer(weightsTar)}
	delete(s.manifest.Layers[0].Annotations, convert.AnnotationMembers)
	s.put()
	from := location.Location{Kind: location.KindRegistry, Registry: s.Host, Repository: sourceRepo, Tag: "1"}
	wrap := &carton.Runner{Name: "noop", RequiredFrameworkVersion: "*"}
	src, err := fresh().call().open(t.Context(), from, OpenOptions{Wrap: wrap})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	result, err := fresh().PushSource(t.Context(), src.Source, "m", s.Host+"/m:1", PushOptions{})
	if err != nil || result.Source.Copied || result.ModelHash != src.Manifest().ModelHash() {
		t.Errorf("got %+v, %v", result, err)
	}
}
