package convert

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// planOfImage cuts members, which need no content, into an image's layers.
func planOfImage(t *testing.T, family Family, members []carton.Member) (artifact, image []*layer) {
	t.Helper()
	opts, err := Options{Image: true, MediaTypes: family}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	b := &builder{info: &carton.Info{}, opts: opts, members: append(members, carton.Member{Path: carton.InfoName, Size: 100})}
	slices.SortFunc(b.members, func(x, y carton.Member) int { return strings.Compare(x.Path, y.Path) })
	b.src = cartontest.New(map[string][]byte{b.members[len(b.members)-1].Path: nil}, nil) // its MANIFEST says whether there is a model
	if artifact, err = newPlanner(b.members, b.info, b.opts, nil).layers(); err != nil {
		t.Fatal(err)
	}
	if image, err = b.planImage(artifact); err != nil {
		t.Fatal(err)
	}
	return artifact, image
}

// However many members there are and however large, both manifests stay below
// what runtimes mount, and the largest members keep a layer each.
func TestImagesHaveAtMost120Layers(t *testing.T) {
	testenv.Heavy(t)
	const mib, gib = 1 << 20, 1 << 30
	for name, c := range map[string]struct {
		members []carton.Member
		alone   int64 // members of this size and more have a layer each; 0: none
		largest int64 // no layer has more content than this
	}{
		"10,000 small members":      {some(10_000, "%05d.json", 1000), 0, bundleBytes},
		"10,000 weights":            {some(10_000, "%05d.bin", 1000), 0, bundleBytes},
		"118 shards":                {some(118, "%03d.safetensors", 5*gib), 5 * gib, 5 * gib},
		"200 shards of 5 GiB":       {some(200, "%03d.safetensors", 5*gib), 0, 12 * gib},
		"1,000 of 20 MiB":           {some(1000, "%04d.safetensors", 20*mib), 0, 256 * mib},
		"100 large, 100 of 100 MiB": {join(some(100, "%03d-a.bin", 4*gib), some(100, "%03d-b.bin", 100*mib)), 4 * gib, 4 * gib},
		"300 datasets of 1 GiB":     {some(300, "%d.json", gib), 0, 4 * gib},
		"100 shards, many small": {
			join(some(100, "%03d.safetensors", 3*gib), some(5000, "%d.json", 5000), some(300, "%d.py", 100)), 3 * gib, 3 * gib,
		},
		"the largest there are": {some(150, "%d.bin", 1<<50), 0, 1 << 52},
	} {
		artifact, image := planOfImage(t, FamilyCNAI, c.members)
		if len(artifact) > 120 || len(image) > 120 {
			t.Errorf("%s: got %d layers of the artifact and %d of the image, want at most 120", name, len(artifact), len(image))
		}
		held := 0
		for _, l := range image {
			size := int64(0)
			for _, m := range l.members {
				held++
				size += m.Size
				if c.alone > 0 && m.Size >= c.alone && len(l.members) > 1 {
					t.Errorf("%s: %s of %d bytes shares a layer", name, m.Path, m.Size)
				}
			}
			if size > c.largest {
				t.Errorf("%s: a layer of %d members has %d bytes, want at most %d", name, len(l.members), size, c.largest)
			}
		}
		if held != len(c.members)+1 {
			t.Errorf("%s: the layers hold %d members, want %d", name, held, len(c.members)+1)
		}
	}
}

// Where nothing is raw, the tar of the symlink is one layer more.
func TestImagesOfTheDraftHaveAtMost120Layers(t *testing.T) {
	for n := 110; n < 130; n++ {
		artifact, image := planOfImage(t, FamilyDraft, some(n, "%03d.safetensors", 5<<30))
		if len(image) != len(artifact)+1 || len(image) > 120 {
			t.Errorf("%d shards: got %d layers of the artifact and %d of the image, want one more and at most 120", n, len(artifact), len(image))
		}
	}
}

// An image of raw layers is cut by itself; the artifact stays what it is.
func TestAnImageOfManyRawLayers(t *testing.T) {
	files := map[string][]byte{}
	for i := range 300 {
		files[fmt.Sprintf("model/%03d.bin", i)] = []byte{byte(i), byte(i >> 8)}
	}
	forms := formsOf(t, cartontest.New(files, nil), Options{Layers: FormRaw, Image: true})
	if n := len(forms.Artifact.Layers); n != 302 {
		t.Errorf("the artifact has %d layers, want 302", n)
	}
	if n := len(forms.Image.Layers); n != 2 {
		t.Errorf("the image has %d layers, want 2: two members and all others", n)
	}
}

func TestTooManyLayersForAnImage(t *testing.T) {
	files := map[string][]byte{}
	for i := range 130 {
		files[fmt.Sprintf("misc/%03d", i)] = []byte{1, byte(i)}
	}
	src := cartontest.New(files, nil)
	for _, form := range []Form{FormRaw, FormTar} {
		_, err := Build(t.Context(), src, Options{Layers: form, Image: true, BundleBelow: 1})
		if err == nil || err.Error() != "the carton makes 132 layers, want at most 120" {
			t.Errorf("%s: got %v", form, err)
		}
	}
	if _, err := artifactOf(t.Context(), src, Options{BundleBelow: 1}); err != nil {
		t.Errorf("without an image: %v", err)
	}
}

// Ten thousand members make two small image manifests, and come back.
func TestTenThousandMembersInAnImage(t *testing.T) {
	testenv.Heavy(t)
	files := map[string][]byte{}
	for i := range 10_000 {
		files[fmt.Sprintf("model/%d/%04d.py", i%50, i)] = fmt.Appendf(nil, "file %d", i)
	}
	src := cartontest.New(files, nil)
	forms := formsOf(t, src, Options{Image: true})
	for name, a := range map[string]*layout.Artifact{"artifact": forms.Artifact, "image": forms.Image} {
		if len(a.Layers) > 120 || len(a.Manifest) > 100_000 {
			t.Errorf("the %s has %d layers and an image manifest of %d bytes", name, len(a.Layers), len(a.Manifest))
		}
	}
	s := newShelf()
	back := opened(t, s, s.put(t, forms.Image), OpenOptions{})
	members, err := back.Members(t.Context())
	if err != nil || len(members) != 10_001 || back.Manifest().ModelHash() != src.Manifest().ModelHash() {
		t.Errorf("got %d members of %s, %v", len(members), back.Manifest().ModelHash(), err)
	}
}
