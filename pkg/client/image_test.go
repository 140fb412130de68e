package client

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/location"
)

// large is a carton whose weights would show being read twice.
func large() *cartontest.Source {
	return cartontest.New(map[string][]byte{
		"model/a.safetensors": bytes.Repeat([]byte("a"), 3<<20), "model/b.bin": bytes.Repeat([]byte("b"), 2<<20), "model/c.json": []byte("{}"),
	}, map[string]string{"model/l.json": "c.json"})
}

// Tar layers come once, to be checked, and nothing goes back but manifests.
func TestImageOfTarLayers(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{})
	ref := r.Host + "/org/m:1"
	want := pushImage(t, large(), ref, PushOptions{ImageTag: "by-push"}).Image.Digest
	r.Forget()
	result, err := fresh().Image(t.Context(), ref, ImageOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if result.Digest != want || !result.Shared || result.Reference != ref+"-image" || result.Artifact.Reference != ref {
		t.Errorf("got %+v, want the image %s of the push", result, want)
	}
	if result.BytesUploaded != 0 || result.BytesDownloaded > 5<<20+50_000 || r.Count("PUT|PATCH", "/blobs/") != 0 {
		t.Errorf("%d bytes went up and %d came down, want none and the model once", result.BytesUploaded, result.BytesDownloaded)
	}
	if got, _, _ := r.Manifest("org/m", "1-image"); got != want {
		t.Errorf("the tag points to %s", got)
	}
}

// Raw layers travel down once and up once, and nothing is kept between.
func TestImageOfRawLayersTravelsOnce(t *testing.T) {
	for name, quirks := range map[string]registrytest.Quirks{
		"any registry":                {},
		"a registry that chunks late": {MaxRequest: 1 << 20},
	} {
		r := registrytest.New(t, registrytest.Config{Quirks: quirks})
		ref := r.Host + "/org/m:1"
		if _, err := fresh().PushSource(t.Context(), large(), "large", ref, PushOptions{}); err != nil {
			t.Fatal(err)
		}
		r.Forget()
		result, err := fresh().Image(t.Context(), ref, ImageOptions{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, down := r.Bytes("GET", "/blobs/")
		if name == "any registry" && (down > 5<<20+50_000 || result.BytesDownloaded != down) {
			t.Errorf("%s: %d bytes came down, %d were said, want the model once", name, down, result.BytesDownloaded)
		}
		if result.Shared || result.Size < 5<<20 {
			t.Errorf("%s: got %+v", name, result)
		}
		want := pushImage(t, large(), "h.io/m:1", PushOptions{}, within(inMemory())).Image.Digest
		if result.Digest != want {
			t.Errorf("%s: got the image %s, a push makes %s", name, result.Digest, want)
		}
		out := filepath.Join(t.TempDir(), "m.carton")
		back, err := fresh().Pull(t.Context(), ref+"-image", PullOptions{Output: out})
		if err != nil || back.ModelHash != large().Manifest().ModelHash() {
			t.Errorf("%s: got %+v, %v", name, back, err)
		}
	}
}

// Where no blob is taken without its digest the members are read once more.
func TestImageWithoutChunks(t *testing.T) {
	for name, start := range map[string]func() (string, Options){
		"registry": func() (string, Options) {
			return registrytest.New(t, registrytest.Config{Quirks: registrytest.Quirks{NoPatch: 405}}).Host + "/m:1", Options{}
		},
		"layout": func() (string, Options) { return "oci:" + filepath.Join(t.TempDir(), "l") + ":1", Options{} },
		"target": func() (string, Options) { return "h.io/m:1", within(inMemory()) },
	} {
		ref, opts := start()
		if _, err := fresh(opts).PushSource(t.Context(), large(), "large", ref, PushOptions{}); err != nil {
			t.Fatal(err)
		}
		result, err := fresh(opts).Image(t.Context(), ref, ImageOptions{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		again, err := fresh(opts).Image(t.Context(), ref, ImageOptions{NoClobber: true})
		if err != nil || again.Digest != result.Digest {
			t.Errorf("%s, again: got %+v, %v", name, again, err)
		}
		back, err := fresh(opts).Pull(t.Context(), ref+"-image", PullOptions{Output: filepath.Join(t.TempDir(), "m.carton")})
		if err != nil || back.ModelHash != large().Manifest().ModelHash() {
			t.Errorf("%s: got %+v, %v", name, back, err)
		}
	}
}

func TestDryRunOfAStoredImage(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{})
	for tag, form := range map[string]convert.Form{"raw": convert.FormRaw, "tar": convert.FormTar} {
		ref := r.Host + "/m:" + tag
		if _, err := fresh().PushSource(t.Context(), large(), "large", ref, PushOptions{Mapping: convert.Options{Layers: form}}); err != nil {
			t.Fatal(err)
		}
		r.Forget()
		result, err := fresh().Image(t.Context(), ref, ImageOptions{DryRun: true})
		if err != nil || !result.DryRun || result.Size < 5<<20 || r.Count("PUT|PATCH|POST", "/") != 0 {
			t.Errorf("%s: got %+v, %v", tag, result, err)
		}
		if result.Digest != "" || result.BytesDownloaded > 10_000 {
			t.Errorf("%s: got the digest %q, and %d bytes; a dry run reads no layer, and promises none", tag, result.Digest, result.BytesDownloaded)
		}
	}
}

func TestImageThatCannotBe(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{})
	ref := r.Host + "/m:1"
	digest := pushImage(t, sample(), ref, PushOptions{}).Digest
	if _, err := fresh().PushSource(t.Context(), other(), "other", r.Host+"/m:2", PushOptions{}); err != nil {
		t.Fatal(err)
	}
	marked := cartontest.New(map[string][]byte{"model/.wh.x": []byte("x")}, nil)
	if _, err := fresh().PushSource(t.Context(), marked, "marked", r.Host+"/m:3", PushOptions{}); err != nil {
		t.Fatal(err)
	}
	r.Forget()
	for name, c := range map[string]struct {
		ref  string
		opts ImageOptions
		kind error
		text string
	}{
		"a carton":            {"m.carton", ImageOptions{}, location.ErrLocation, "got a carton, want an artifact"},
		"a digest":            {r.Host + "/m@" + digest.String(), ImageOptions{}, location.ErrLocation, "got a digest, want a tag"},
		"an image":            {ref + "-image", ImageOptions{}, nil, "is the image form of a carton already"},
		"no such tag":         {r.Host + "/m:9", ImageOptions{}, layout.ErrNotFound, "m:9"},
		"its own tag":         {ref, ImageOptions{Tag: "1"}, location.ErrLocation, "is a tag of the artifact"},
		"a stranger's tag":    {ref, ImageOptions{Tag: "2"}, layout.ErrTagExists, "tag 2: points to"},
		"another model's tag": {r.Host + "/m:2", ImageOptions{Tag: "1-image", NoClobber: true}, layout.ErrTagExists, "is the image form of another model"},
		"a name that deletes": {r.Host + "/m:3", ImageOptions{}, convert.ErrNoImage, "model/.wh.x: "},
	} {
		_, err := fresh().Image(t.Context(), c.ref, c.opts)
		if err == nil || c.kind != nil && !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want %s", name, err, c.text)
		}
	}
	if n := r.Count("PUT|PATCH|POST", "/"); n != 0 {
		t.Errorf("%d requests changed something", n)
	}
	byDigest, err := fresh().Image(t.Context(), r.Host+"/m@"+digest.String(), ImageOptions{Tag: "x"})
	if err != nil || byDigest.Reference != r.Host+"/m:x" {
		t.Errorf("a digest, and a tag for the image: got %+v, %v", byDigest, err)
	}
	moved, err := fresh().Image(t.Context(), r.Host+"/m:2", ImageOptions{Tag: "1-image", Subject: true})
	if err != nil || moved.ModelHash != other().Manifest().ModelHash() {
		t.Errorf("a tag that may move: got %+v, %v", moved, err)
	}
}
