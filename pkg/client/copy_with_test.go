package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/registry"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// textLayer is a blob of text.
func textLayer(mediaType, text string) layout.Layer {
	desc := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromString(text), Size: int64(len(text))}
	return layout.Layer{Descriptor: desc, Open: func(_ context.Context, off int64) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(text[off:])), nil
	}}
}

// attached is an artifact about a subject, or about nothing.
func attached(t *testing.T, artifactType, text string, subject *ocispec.Descriptor) *layout.Artifact {
	t.Helper()
	a, err := layout.NewArtifact(layout.ArtifactSpec{
		ArtifactType: artifactType, Config: textLayer(ocispec.MediaTypeEmptyJSON, "{}"),
		Layers: []layout.Layer{textLayer("text/plain", text)}, Subject: subject,
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// storeOf opens a repository of a registry for a test to push to.
func storeOf(t *testing.T, host, repository string) *registry.Repository {
	t.Helper()
	c, err := registry.NewClient(registry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Repository(host, repository)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustPush(t *testing.T, s layout.Store, a *layout.Artifact, tags ...string) {
	t.Helper()
	if _, err := layout.Push(t.Context(), s, a, layout.PushOptions{Tags: tags}); err != nil {
		t.Fatal(err)
	}
}

// signed is a model in a registry with all that can belong to it.
type signed struct {
	ref                                              string
	art, image                                       ocispec.Descriptor
	signature, attestation, again, ofImage, cosigned *layout.Artifact
}

func sign(t *testing.T, r *registrytest.Registry) *signed {
	t.Helper()
	s := &signed{ref: r.Host + "/org/m:1"}
	pushed, err := fresh().PushSource(t.Context(), documented(), "m", s.ref, PushOptions{Mapping: convert.Options{Image: true, Layers: convert.FormTar}})
	if err != nil {
		t.Fatal(err)
	}
	store := storeOf(t, r.Host, "org/m")
	for ref, to := range map[string]*ocispec.Descriptor{"1": &s.art, "1-image": &s.image} {
		if *to, err = store.Resolve(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
	}
	s.signature = attached(t, "application/vnd.dev.sigstore.bundle.v0.3+json", "a signature", &s.art)
	s.attestation = attached(t, "application/vnd.in-toto+json", "an attestation", &s.art)
	s.again = attached(t, "application/vnd.dev.sigstore.bundle.v0.3+json", "a signature of that", &s.attestation.Descriptor)
	s.ofImage = attached(t, "application/vnd.dev.sigstore.bundle.v0.3+json", "a signature of the image", &s.image)
	s.cosigned = attached(t, "application/vnd.dev.cosign.artifact.sig.v1+json", "an old signature", nil)
	for _, a := range []*layout.Artifact{s.signature, s.attestation, s.again, s.ofImage} {
		mustPush(t, store, a)
	}
	mustPush(t, store, s.cosigned, sigTag(pushed.Digest))
	return s
}

func sigTag(d digest.Digest) string { return "sha256-" + d.Encoded() + ".sig" }

// arrived wants everything that belongs to a model to be where ref is.
func (s *signed) arrived(t *testing.T, ref string) {
	t.Helper()
	sameManifest(t, s.ref, ref)
	sameManifest(t, s.ref+"-image", ref+"-image")
	from, err := fresh().call().parseAndResolve(t, ref)
	if err != nil {
		t.Fatal(err)
	}
	for subject, want := range map[digest.Digest][]*layout.Artifact{
		s.art.Digest: {s.signature, s.attestation}, s.attestation.Digest: {s.again}, s.image.Digest: {s.ofImage},
	} {
		desc, err := from.store.Resolve(t.Context(), string(subject))
		if err != nil {
			t.Errorf("%s: %v", ref, err)
			continue
		}
		found, left, err := layout.ReadReferrers(t.Context(), from.store, desc, "")
		if err != nil || len(left) > 0 || len(found) != len(want) {
			t.Errorf("%s: referrers of %s: got %d, %v, %v, want %d", ref, subject, len(found), left, err, len(want))
		}
		for _, a := range want {
			if !slices.ContainsFunc(found, func(r layout.Referrer) bool { return r.Digest == a.Digest }) {
				t.Errorf("%s: %s is not there", ref, a.ArtifactType)
			}
			if _, err := layout.ReadBlob(t.Context(), from.store, a.Layers[0].Descriptor, 1000); err != nil {
				t.Errorf("%s: %v", ref, err)
			}
		}
	}
	if desc, err := from.store.Resolve(t.Context(), sigTag(s.art.Digest)); err != nil || desc.Digest != s.cosigned.Digest {
		t.Errorf("%s: cosign's tag: got %v, %v", ref, desc, err)
	}
}

func (c *call) parseAndResolve(t *testing.T, ref string) (*site, error) {
	t.Helper()
	loc, err := parseArtifact(ref)
	if err != nil {
		return nil, err
	}
	s, _, _, err := c.resolve(t.Context(), loc, false)
	return s, err
}

// An air gap: two copies, and what arrives is what was signed, wherever it went.
func TestWhatBelongsToAModelGoesAlong(t *testing.T) {
	testenv.Heavy(t)
	for name, config := range map[string]registrytest.Config{"lists": {Quirks: registrytest.Quirks{Referrers: true}}, "tags": {}} {
		t.Run(name, func(t *testing.T) {
			here, there := registrytest.New(t, config), registrytest.New(t, config)
			s := sign(t, here)
			dir := t.TempDir()
			at := s.ref
			for _, to := range []string{
				there.Host + "/org/m:1", filepath.Join(dir, "m.oci.tar") + ":1", "oci:" + filepath.Join(dir, "lay") + ":1",
				filepath.Join(dir, "again.oci.tar") + ":1", there.Host + "/other/m:1", here.Host + "/org/m:2",
			} {
				for again := range 2 {
					result, err := fresh().Copy(t.Context(), at, to, CopyOptions{Recursive: true})
					if err != nil {
						t.Fatal(err)
					}
					kinds := map[string]int{}
					for _, w := range result.With {
						kinds[w.Kind]++
					}
					if kinds["referrer"] != 4 || kinds["signature"] != 1 || len(kinds) != 2 || result.Image == nil || result.Image.Digest != s.image.Digest || len(result.Warnings) > 0 {
						t.Errorf("%s: with %v, %+v, %q", to, kinds, result.Image, result.Warnings)
					}
					if again == 1 && result.BytesUploaded > 0 {
						t.Errorf("%s: %d bytes went a second time", to, result.BytesUploaded)
					}
				}
				s.arrived(t, to)
				at = to
			}
			one, err1 := os.ReadFile(filepath.Join(dir, "m.oci.tar"))
			two, err2 := os.ReadFile(filepath.Join(dir, "again.oci.tar"))
			if err := errors.Join(err1, err2); err != nil || string(one) != string(two) {
				t.Errorf("the archives differ, %v", err)
			}
			// Of an archive that holds one model with all that belongs to it, that is meant.
			if desc, err := fresh().Resolve(t.Context(), filepath.Join(dir, "m.oci.tar")); err != nil || desc.Digest != s.art.Digest {
				t.Errorf("without a tag: got %v, %v", desc, err)
			}
		})
	}
}

// Without -r nothing goes along.
func TestACopyAlone(t *testing.T) {
	here := registrytest.New(t, registrytest.Config{Quirks: registrytest.Quirks{Referrers: true}})
	s := sign(t, here)
	name := filepath.Join(t.TempDir(), "m.oci.tar")
	result, err := fresh().Copy(t.Context(), s.ref, name, CopyOptions{})
	if err != nil || len(result.With) > 0 || result.Image != nil {
		t.Fatalf("got %+v, %v", result, err)
	}
	if _, err := fresh().Resolve(t.Context(), name+":1-image"); !errors.Is(err, layout.ErrNotFound) {
		t.Errorf("the image form: got %v, want ErrNotFound", err)
	}
}

// A place that has other signatures under cosign's tag keeps them; one that has fewer
// gets the others.
func TestSignaturesOfOthersStay(t *testing.T) {
	here, there := registrytest.New(t, registrytest.Config{}), registrytest.New(t, registrytest.Config{})
	s := sign(t, here)
	tag, store := sigTag(s.art.Digest), storeOf(t, there.Host, "org/m")
	theirs := attached(t, "application/vnd.dev.cosign.artifact.sig.v1+json", "somebody else's", nil)
	mustPush(t, store, theirs, tag)
	result, err := fresh().Copy(t.Context(), s.ref, there.Host+"/org/m:1", CopyOptions{Recursive: true})
	if err != nil || len(result.Warnings) != 1 || !strings.Contains(result.Warnings[0], "stays where it is") {
		t.Fatalf("got %+v, %v", result, err)
	}
	if desc, err := store.Resolve(t.Context(), tag); err != nil || desc.Digest != theirs.Digest {
		t.Errorf("got %v, %v, want theirs", desc, err)
	}
	fewer, err := layout.NewArtifact(layout.ArtifactSpec{
		ArtifactType: s.cosigned.ArtifactType, Config: s.cosigned.Config, Layers: []layout.Layer{textLayer("text/plain", "an old signature")},
		Annotations: map[string]string{"older": "yes"},
	})
	if err != nil {
		t.Fatal(err)
	}
	mustPush(t, store, fewer, tag)
	if _, err := fresh().Copy(t.Context(), s.ref, there.Host+"/org/m:1", CopyOptions{Recursive: true}); err != nil {
		t.Fatal(err)
	}
	if desc, err := store.Resolve(t.Context(), tag); err != nil || desc.Digest != s.cosigned.Digest {
		t.Errorf("got %v, %v, want the source's", desc, err)
	}
}

// Anything can be copied, byte for byte; what says that it is a carton must be one.
func TestACopyOfAnything(t *testing.T) {
	here := registrytest.New(t, registrytest.Config{Quirks: registrytest.Quirks{Referrers: true}})
	store := storeOf(t, here.Host, "org/m")
	one, two := attached(t, "application/vnd.example.v1", "one", nil), attached(t, "application/vnd.example.v1", "two", nil)
	for _, a := range []*layout.Artifact{one, two} {
		mustPush(t, store, a)
	}
	mustPush(t, store, one, "any")
	mustPush(t, store, attached(t, "application/vnd.example.sig.v1", "of an entry", &two.Descriptor))
	raw := []byte(fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"manifests":[{"mediaType":%q,"digest":%q,"size":%d,"platform":{"os":"linux","architecture":"amd64"}},`+
		`{"mediaType":%q,"digest":%q,"size":%d}]}`, ocispec.MediaTypeImageIndex, one.MediaType, one.Digest, one.Size, two.MediaType, two.Digest, two.Size))
	index := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageIndex, Digest: digest.FromBytes(raw), Size: int64(len(raw))}
	if err := store.PutManifest(t.Context(), index, raw, layout.PutOptions{Tags: []string{"index"}}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for tag, want := range map[string]digest.Digest{"any": one.Digest, "index": index.Digest} {
		at := here.Host + "/org/m:" + tag
		for _, to := range []string{
			filepath.Join(dir, tag+".oci.tar"), here.Host + "/other/" + tag, "oci:" + filepath.Join(dir, tag), filepath.Join(dir, tag+"2.oci.tar"),
		} {
			result, err := fresh().Copy(t.Context(), at, to, CopyOptions{Recursive: true})
			if err != nil || result.Digest != want || result.ModelHash != "" {
				t.Fatalf("%s to %s: got %+v, %v", at, to, result, err)
			}
			if n := map[string]int{"any": 0, "index": 3}[tag]; len(result.With) != n {
				t.Errorf("%s to %s: with %+v, want %d", at, to, result.With, n)
			}
			at = to + ":" + tag
			s, err := fresh().call().parseAndResolve(t, at)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := s.store.FetchManifest(t.Context(), index); tag == "index" && (err != nil || string(got) != string(raw)) {
				t.Errorf("%s: got %s, %v", at, got, err)
			}
			if _, err := layout.ReadBlob(t.Context(), s.store, one.Layers[0].Descriptor, 100); err != nil {
				t.Errorf("%s: %v", at, err)
			}
		}
	}
	liar := attached(t, "application/vnd.cnai.model.manifest.v1+json", "no carton", nil)
	bad, err := layout.NewArtifact(layout.ArtifactSpec{
		ArtifactType: "application/vnd.cncf.model.manifest.v1+json", Config: textLayer(ocispec.MediaTypeEmptyJSON, "{}"), Layers: liar.Layers,
		Annotations: map[string]string{convert.AnnotationModelHash: strings.Repeat("a", 64)},
	})
	if err != nil {
		t.Fatal(err)
	}
	mustPush(t, store, bad, "bad")
	if _, err := fresh().Copy(t.Context(), here.Host+"/org/m:bad", here.Host+"/other/bad:1", CopyOptions{}); err == nil {
		t.Error("what says that it is a carton was copied, and is none")
	}
	if _, err := fresh().Copy(t.Context(), here.Host+"/org/m:any", here.Host+"/other/bad:1", CopyOptions{ModelHash: strings.Repeat("a", 64)}); err == nil {
		t.Error("what is no model was copied in place of one")
	}
}

// Lists of referrers that lead on for ever, or nowhere, end.
// A list may have ten thousand entries that lead nowhere: a few are named.
func TestAListOfReferrersThatLies(t *testing.T) {
	here := registrytest.New(t, registrytest.Config{Quirks: registrytest.Quirks{Referrers: true}})
	first := attached(t, "application/vnd.example.v1", "first", nil)
	mustPush(t, storeOf(t, here.Host, "m"), first, "1")
	list := ocispec.Index{MediaType: ocispec.MediaTypeImageIndex, Manifests: make([]ocispec.Descriptor, 300)}
	list.SchemaVersion = 2
	for i := range list.Manifests {
		list.Manifests[i] = ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromString(fmt.Sprint(i)), Size: 400}
	}
	raw, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	here.Break(registrytest.Fault{
		Methods: "GET", Path: "/referrers/", Times: -1,
		Effect: registrytest.Answer(200, string(raw), "Content-Type", ocispec.MediaTypeImageIndex),
	})
	result, err := fresh().Copy(t.Context(), here.Host+"/m:1", filepath.Join(t.TempDir(), "m.oci.tar"), CopyOptions{Recursive: true})
	if err != nil || result.Digest != first.Digest || len(result.With) != 0 {
		t.Fatalf("got %+v, %v", result, err)
	}
	if n := len(result.Warnings); n != maxLies+1 || !strings.Contains(result.Warnings[n-1], "and 290 more") {
		t.Errorf("got %d warnings, the last of them %q", n, result.Warnings[n-1])
	}
}

func TestWhatBelongsToAModelIsBounded(t *testing.T) {
	here := registrytest.New(t, registrytest.Config{Quirks: registrytest.Quirks{Referrers: true}})
	store := storeOf(t, here.Host, "m")
	first := attached(t, "application/vnd.example.v1", "first", nil)
	mustPush(t, store, first, "1")
	about := first
	for i := range maxDepth + 2 {
		about = attached(t, "application/vnd.example.v1", fmt.Sprint("about ", i), &about.Descriptor)
		mustPush(t, store, about)
	}
	_, err := fresh().Copy(t.Context(), here.Host+"/m:1", filepath.Join(t.TempDir(), "m.oci.tar"), CopyOptions{Recursive: true})
	if !errors.Is(err, layout.ErrLimit) {
		t.Errorf("got %v, want ErrLimit", err)
	}
}
