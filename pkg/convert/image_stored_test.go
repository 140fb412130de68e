package convert

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// finish learns what is not known yet as a push does: by reading it.
func finish(t *testing.T, forms *Forms) (image *layout.Artifact, learned []digest.Digest) {
	t.Helper()
	for _, l := range forms.Image.Layers {
		if l.Vouch != nil {
			if err := l.Vouch(t.Context(), nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		if l.Digest != "" {
			continue
		}
		text := configOf(t, l)
		if int64(len(text)) != l.Size {
			t.Errorf("%s has %d bytes, %d were said", l.Name, len(text), l.Size)
		}
		learned = append(learned, digest.FromString(text))
	}
	image, err := forms.Image.Complete(learned)
	if err != nil {
		t.Fatal(err)
	}
	return image, learned
}

// An image made of what is stored is the one that a push would have made.
func TestTheImageOfAStoredArtifact(t *testing.T) {
	for name, opts := range imageModes() {
		t.Run(name, func(t *testing.T) {
			forms := formsOf(t, kinds(), opts)
			s := newShelf()
			src := opened(t, s, s.put(t, forms.Artifact), OpenOptions{})
			s.reset()
			p, err := Image(t.Context(), src, opts)
			if err != nil {
				t.Fatal(err)
			}
			image, learnt := finish(t, p)
			if image.Digest != forms.Image.Digest {
				t.Errorf("got %s, want %s\n%s\n%s", image.Digest, forms.Image.Digest, image.Manifest, forms.Image.Manifest)
			}
			if shared := opts.Layers != FormRaw; p.Shared != shared || shared && learnt != nil {
				t.Errorf("got shared %v with %q to read, want %v", p.Shared, learnt, shared)
			}
			s.put(t, image) // every layer opens
		})
	}
}

// What an image shares is read to be checked: each layer once, whole.
func TestASharedImageReadsEachLayerOnce(t *testing.T) {
	for _, opts := range []Options{{Layers: FormTar}, {Layers: FormTar, BundleBelow: 100, Compress: CompressZstd}} {
		s, desc, a := pushed(t, kinds(), opts)
		src := opened(t, s, desc, OpenOptions{})
		p, err := Image(t.Context(), src, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Image.Complete(nil); err == nil {
			t.Error("got an image of layers that nobody has read")
		}
		s.reset()
		finish(t, p)
		finish(t, p)
		for _, l := range a.Layers {
			want := 1
			if l.Name == carton.ManifestName || l.Name == carton.InfoName {
				want = 0
			}
			if n := count(s.requests, l.Digest.String()); n != want {
				t.Errorf("%s was read %d times, want %d", l.Name, n, want)
			}
		}
	}
}

// Members of raw layers are each read once, from what is stored.
func TestRawLayersAreReadOnce(t *testing.T) {
	s, desc, _ := pushed(t, kinds(), Options{})
	src := opened(t, s, desc, OpenOptions{})
	s.reset()
	p, err := Image(t.Context(), src, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, learnt := finish(t, p); len(learnt) == 0 {
		t.Error("nothing was read")
	}
	weights := digest.FromBytes(bytes.Repeat([]byte("v"), 3000))
	if n := count(s.requests, weights.String()); n != 1 {
		t.Errorf("model/weights-2.bin was read %d times", n)
	}
}

func count(requests []string, prefix string) (n int) {
	for _, r := range requests {
		if strings.HasPrefix(r, prefix) {
			n++
		}
	}
	return n
}

// More tars than an image may have are cut anew.
func TestTooManyStoredTars(t *testing.T) {
	files := map[string][]byte{}
	for i := range 200 {
		files[fmt.Sprintf("model/%03d.bin", i)] = []byte(fmt.Sprint(i))
	}
	s, desc, a := pushed(t, cartontest.New(files, nil), Options{Layers: FormTar})
	if len(a.Layers) != 202 {
		t.Fatalf("the artifact has %d layers", len(a.Layers))
	}
	p, err := Image(t.Context(), opened(t, s, desc, OpenOptions{}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	image, _ := finish(t, p)
	if p.Shared || len(image.Layers) > 120 {
		t.Errorf("got %d layers, shared: %v", len(image.Layers), p.Shared)
	}
	want := formsOf(t, cartontest.New(files, nil), Options{Image: true}).Image
	if image.Digest != want.Digest {
		t.Errorf("got %s, a push makes %s", image.Digest, want.Digest)
	}
}

// Layers of other tools have other headers: files that only their owner reads.
func TestForeignTarsAreNotShared(t *testing.T) {
	s, desc, a := pushed(t, kinds(), Options{Layers: FormTar})
	m := manifestOf(t, a)
	m.Annotations = nil
	desc = s.keep(desc.MediaType, marshal(m))
	p, err := Image(t.Context(), opened(t, s, desc, OpenOptions{}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Shared {
		t.Error("tars of an unknown tool are shared")
	}
	image, _ := finish(t, p)
	if got := manifestOf(t, image).Annotations[AnnotationModelHash]; got != kinds().Manifest().ModelHash() {
		t.Errorf("got the model hash %q", got)
	}
}

// A config that says nothing of use makes layers be read, not a wrong image.
func TestDiffIDsThatAreNotSaid(t *testing.T) {
	opts := Options{Image: true, BundleBelow: 100, Compress: CompressZstd}
	forms := formsOf(t, kinds(), opts)
	for name, config := range map[string]string{
		"too few":   `{"modelfs":{"type":"layers","diffIds":["sha256:` + strings.Repeat("0", 64) + `"]}}`,
		"no digest": `{"modelfs":{"type":"layers","diffIds":[` + strings.Repeat(`"x",`, len(forms.Artifact.Layers)-1) + `"x"]}}`,
		"none":      `{}`,
	} {
		s := newShelf()
		s.put(t, forms.Artifact)
		m := manifestOf(t, forms.Artifact)
		m.Config = s.keep(m.Config.MediaType, []byte(config))
		src := opened(t, s, s.keep(ocispec.MediaTypeImageManifest, marshal(m)), OpenOptions{})
		p, err := Image(t.Context(), src, Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if image, _ := finish(t, p); image.Digest != forms.Image.Digest {
			t.Errorf("%s: got %s, want %s", name, image.Digest, forms.Image.Digest)
		}
	}
}

func TestImageOfAnImage(t *testing.T) {
	s := newShelf()
	desc := s.put(t, formsOf(t, kinds(), Options{Image: true}).Image)
	_, err := Image(t.Context(), opened(t, s, desc, OpenOptions{}), Options{})
	if err == nil || !strings.Contains(err.Error(), "is the image form of a carton already") {
		t.Errorf("got %v", err)
	}
}

// An image that was not read to its end is none.
func TestAPlanThatIsNotFinished(t *testing.T) {
	s, desc, _ := pushed(t, kinds(), Options{})
	p, err := Image(t.Context(), opened(t, s, desc, OpenOptions{}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(p.Image.Layers, func(l layout.Layer) bool { return l.Digest == "" }) {
		t.Fatal("all is known")
	}
	if _, err := p.Image.Complete(nil); err == nil {
		t.Error("got an image of layers that nobody has read")
	}
}
