package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/registry"
	"github.com/google/go-cmp/cmp"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content/memory"
)

func pushImage(t *testing.T, src carton.Source, ref string, opts PushOptions, at ...Options) *PushResult {
	t.Helper()
	opts.Mapping.Image = true
	result, err := fresh(at...).PushSource(t.Context(), src, "sample", ref, opts)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// puts returns what was put where, manifests only.
func puts(r *registrytest.Registry) []string {
	var names []string
	for _, rec := range r.Requests() {
		if _, name, ok := strings.Cut(rec.Path, "/manifests/"); ok && rec.Method == http.MethodPut {
			names = append(names, name)
		}
	}
	return names
}

func other() *cartontest.Source {
	return cartontest.New(map[string][]byte{"model/a.bin": []byte("another model")}, nil)
}

func TestPushImage(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{})
	src := sample()
	result := pushImage(t, src, r.Host+"/org/m:1", PushOptions{})
	// All content before any tag, and the artifact's tag last.
	if diff := cmp.Diff([]string{result.Digest.String(), "1-image", "1"}, puts(r)); diff != "" {
		t.Errorf("image manifests: %s", diff)
	}
	artifact, _, _ := r.Manifest("org/m", "1")
	image, raw, _ := r.Manifest("org/m", "1-image")
	want := &PushedImage{Reference: r.Host + "/org/m:1-image", Digest: image, Shared: true, Unshared: result.Image.Unshared}
	if diff := cmp.Diff(want, result.Image); diff != "" || artifact != result.Digest {
		t.Errorf("got the artifact %s and the image %s", result.Digest, diff)
	}
	// Each blob once: MANIFEST, carton.toml, four tars, the tar of two, two configs.
	if n := r.Count("PUT", "/blobs/uploads/"); n != 9 {
		t.Errorf("%d blobs were sent, want 9", n)
	}
	if in, _ := r.Bytes("PUT", "/blobs/uploads/"); in != result.BytesUploaded {
		t.Errorf("told of %d bytes, %d came", result.BytesUploaded, in)
	}
	m, err := layout.ParseManifest(raw)
	if err != nil || !convert.IsImage(m) {
		t.Errorf("got no image: %v", err)
	}
	if m.Layers[0].Size+m.Config.Size != result.Image.Unshared {
		t.Errorf("got %d bytes that are not shared, want %d", result.Image.Unshared, m.Layers[0].Size+m.Config.Size)
	}
	r.Forget()
	again := pushImage(t, sample(), r.Host+"/org/m:1", PushOptions{})
	if again.Digest != result.Digest || again.Image.Digest != image || again.BytesUploaded != 0 || r.Count("POST", "/") != 0 {
		t.Errorf("again: got %+v", again)
	}
	for _, tag := range []string{"1", "1-image"} {
		back, err := fresh().Open(t.Context(), r.Host+"/org/m:"+tag, OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		report, err := carton.Verify(t.Context(), back, carton.VerifyOptions{})
		if err != nil || !report.OK() || report.ModelHash != src.Manifest().ModelHash() {
			t.Errorf("%s: got %+v, %v", tag, report, err)
		}
		back.Close()
	}
}

func TestPushImageWithASubject(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{})
	result := pushImage(t, sample(), r.Host+"/m:1", PushOptions{Mapping: convert.Options{ImageSubject: true}})
	_, raw, _ := r.Manifest("m", "1-image")
	m, err := layout.ParseManifest(raw)
	if err != nil || m.Subject == nil || m.Subject.Digest != result.Digest || m.Subject.Size != result.Size {
		t.Errorf("got the subject %+v, %v, want %s", m.Subject, err, result.Digest)
	}
}

func TestEachTagHasItsImage(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{})
	result := pushImage(t, sample(), r.Host+"/m:1,latest", PushOptions{})
	if diff := cmp.Diff([]string{"1-image", "latest-image"}, result.Image.Tags); diff != "" {
		t.Error(diff)
	}
	for tag, want := range map[string]string{"1": "artifact", "latest": "artifact", "1-image": "image", "latest-image": "image"} {
		got, _, _ := r.Manifest("m", tag)
		if digests := map[string]bool{"artifact": got == result.Digest, "image": got == result.Image.Digest}; !digests[want] {
			t.Errorf("%s points to %s, want the %s", tag, got, want)
		}
	}
	if got := puts(r); !slices.Equal(got[len(got)-2:], []string{"1", "latest"}) {
		t.Errorf("got %q, want the artifact's tags last", got)
	}
	result = pushImage(t, sample(), r.Host+"/m:2,3", PushOptions{ImageTag: "mounted"})
	if result.Image.Reference != r.Host+"/m:mounted" || result.Image.Tags != nil {
		t.Errorf("got %+v", result.Image)
	}
	if _, _, ok := r.Manifest("m", "2-image"); ok {
		t.Error("there is an image that was not asked for")
	}
}

func TestTagsOfImages(t *testing.T) {
	long := strings.Repeat("t", 122)
	for _, c := range []struct {
		ref, own string
		want     string // the tags, or what the error says
		hint     string
	}{
		{"h.io/m:1", "", "1-image", ""},
		{"h.io/m:1,2", "", "1-image 2-image", ""},
		{"h.io/m:1,2", "x", "x", ""},
		{"h.io/m:" + long, "", long + "-image", ""},
		{"h.io/m:" + long + "t", "", "the tag has 123 characters, want at most 122", "ImageTag NAME"},
		{"h.io/m:1," + long + "t", "", "the tag has 123 characters", "ImageTag NAME"},
		{"h.io/m:" + long + "t", "x", "x", ""},
		{"h.io/m:1", strings.Repeat("t", 128), strings.Repeat("t", 128), ""},
		{"h.io/m:1", strings.Repeat("t", 129), "letters, digits and", ""},
		{"h.io/m:1", "a b", "letters, digits and", ""},
		{"h.io/m:1,2", "2", "is a tag of the artifact", ""},
		{"h.io/m:1,1-image", "", "1-image is a tag of the artifact and of the image form of 1", "ImageTag NAME"},
		{"h.io/m@" + aDigest, "", "got a digest, want a tag", "write h.io/m:TAG"},
		{"oci:d:1", "", "1-image", ""},
		{"oci:d@" + aDigest, "", "got a digest, want a tag", "write oci:d:TAG"},
	} {
		p := &push{opts: PushOptions{Mapping: convert.Options{Image: true}, ImageTag: c.own}, call: fresh().call()}
		_, err := p.destination(c.ref)
		switch {
		case err == nil && strings.Join(p.imageTags, " ") != c.want:
			t.Errorf("%s: got %q, want %s", c.ref, p.imageTags, c.want)
		case err != nil && (!errors.Is(err, location.ErrLocation) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %s", c.ref, err, c.want)
		case err != nil && c.hint != "" && !strings.Contains(fmt.Sprint(hint.Of(err)), c.hint):
			t.Errorf("%s: got the hints %q, want %s", c.ref, hint.Of(err), c.hint)
		}
	}
}

// An image form that is there moves with its artifact, or somebody says that it
// shall not.
func TestNoImageIsLeftBehind(t *testing.T) {
	for name, options := range map[string]Options{"registry": {}, "layout": {}, "target": within(memory.New())} {
		ref := "h.io/m:1,2"
		switch name {
		case "registry":
			ref = registrytest.New(t, registrytest.Config{}).Host + "/m:1,2"
		case "layout":
			ref = "oci:" + filepath.Join(t.TempDir(), "l") + ":1,2"
		}
		first := strings.TrimSuffix(ref, ",2")
		push := func(src carton.Source, ref string, change func(*PushOptions)) error {
			var opts PushOptions
			change(&opts)
			_, err := fresh(options).PushSource(t.Context(), src, "sample", ref, opts)
			return err
		}
		if err := push(sample(), first, func(o *PushOptions) { o.Mapping.Image = true }); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, dry := range []bool{true, false} {
			err := push(other(), ref, func(o *PushOptions) { o.DryRun = dry })
			if !errors.Is(err, layout.ErrTagExists) || !strings.Contains(err.Error(), "tag 1-image: is the image form of another model, and 1 would move") {
				t.Errorf("%s: got %v", name, err)
			}
			if hints := fmt.Sprint(hint.Of(err)); hints != "[convert.Options.Image moves both client.PushOptions.LeaveImage leaves it as it is]" {
				t.Errorf("%s: got the hints %q", name, hints)
			}
		}
		if err := push(sample(), first, func(*PushOptions) {}); err != nil {
			t.Errorf("%s: the same model: %v", name, err)
		}
		if err := push(other(), strings.TrimSuffix(ref, "1,2")+"3", func(*PushOptions) {}); err != nil {
			t.Errorf("%s: another tag: %v", name, err)
		}
		if err := push(sample(), first, func(o *PushOptions) { o.Mapping.Image, o.ImageTag = true, "4-image" }); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, noClobber := range []bool{false, true} {
			err := push(other(), strings.TrimSuffix(ref, "1,2")+"4", func(o *PushOptions) { o.NoClobber = noClobber })
			if !errors.Is(err, layout.ErrTagExists) || !strings.Contains(err.Error(), "tag 4-image: is the image form of another model") {
				t.Errorf("%s: a new tag beside an image form, NoClobber %v: got %v", name, noClobber, err)
			}
		}
		if err := push(other(), first, func(o *PushOptions) { o.LeaveImage = true }); err != nil {
			t.Errorf("%s: LeaveImage: %v", name, err)
		}
		if err := push(other(), ref, func(o *PushOptions) { o.Mapping.Image = true }); err != nil {
			t.Errorf("%s: Image: %v", name, err)
		}
	}
}

// Nothing is sent before the tags were looked at, and nothing that is no image
// of ours is moved.
func TestAStrangersTagStays(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{})
	pushImage(t, sample(), r.Host+"/m:1", PushOptions{Mapping: convert.Options{Compat: convert.CompatImageConfig}})
	_, artifact, _ := r.Manifest("m", "1")
	_, image, _ := r.Manifest("m", "1-image")
	for name, content := range map[string][]byte{
		"an artifact":             artifact,
		"an image that is not us": bytes.ReplaceAll(image, []byte("run.carton.model.hash"), []byte("com.example.model.hash")),
		"an index":                []byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`),
		"something else":          []byte(`{}`),
	} {
		mediaType := ocispec.MediaTypeImageManifest
		if name == "an index" {
			mediaType = ocispec.MediaTypeImageIndex
		}
		r.AddManifest("m", mediaType, content, "2-image")
		r.Forget()
		_, err := fresh().PushSource(t.Context(), other(), "other", r.Host+"/m:2", PushOptions{Mapping: convert.Options{Image: true, AllowInvalid: true}})
		if !errors.Is(err, layout.ErrTagExists) || !strings.Contains(err.Error(), "2-image: points to sha256:") || r.Count("POST|PUT|PATCH", "/") != 0 {
			t.Errorf("%s: got %v and %d requests", name, err, r.Count("POST|PUT|PATCH", "/"))
		}
		if _, err := fresh().PushSource(t.Context(), other(), "other", r.Host+"/m:2", PushOptions{}); err != nil {
			t.Errorf("%s: without an image: %v", name, err)
		}
	}
}

func TestNoClobberMeansBothTags(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{})
	ref := r.Host + "/m:1"
	pushImage(t, sample(), ref, PushOptions{NoClobber: true})
	pushImage(t, sample(), ref, PushOptions{NoClobber: true}) // changes nothing
	r.Forget()
	for text, c := range map[string]struct {
		src  carton.Source
		ref  string
		opts PushOptions
	}{
		"tag 1: points to":       {other(), ref, PushOptions{}},
		"tag 1-image: points to": {other(), r.Host + "/m:2", PushOptions{ImageTag: "1-image"}},
	} {
		for _, dry := range []bool{true, false} {
			c.opts.NoClobber, c.opts.Mapping.Image, c.opts.DryRun = true, true, dry
			_, err := fresh().PushSource(t.Context(), c.src, "other", c.ref, c.opts)
			if !errors.Is(err, layout.ErrTagExists) || !strings.Contains(err.Error(), text) || r.Count("POST|PUT|PATCH", "/") != 0 {
				t.Errorf("got %v, want %s, and nothing sent", err, text)
			}
		}
	}
}

func TestImageOfRawLayers(t *testing.T) {
	target := inMemory()
	opts := PushOptions{Mapping: convert.Options{Layers: convert.FormRaw}}
	var planned int64
	opts.Planned = func(r *PushResult) { planned = r.Image.Unshared }
	result := pushImage(t, sample(), "h.io/m:1", opts, within(target))
	alone := pushTo(t, inMemory(), "h.io/m:1", sample())
	if result.Digest != alone.Digest {
		t.Errorf("got the artifact %s, want the %s that it is alone", result.Digest, alone.Digest)
	}
	if result.Image.Unshared < 10_000 || planned != result.Image.Unshared {
		t.Errorf("got %d bytes that are not shared, %d were planned, want all of the model", result.Image.Unshared, planned)
	}
}

func TestDryRunOfAnImage(t *testing.T) {
	target := inMemory()
	opts := PushOptions{DryRun: true}
	dry := pushImage(t, sample(), "h.io/m:1", opts, within(target))
	if target.pushes.Load() != 0 || !dry.DryRun {
		t.Errorf("%d blobs were sent", target.pushes.Load())
	}
	opts.DryRun = false
	if wet := pushImage(t, sample(), "h.io/m:1", opts, within(target)); wet.Digest != dry.Digest || wet.Image.Digest != dry.Image.Digest {
		t.Errorf("the dry run said %s and %s, it became %s and %s", dry.Digest, dry.Image.Digest, wet.Digest, wet.Image.Digest)
	}
}

func TestAMemberThatNoImageHolds(t *testing.T) {
	target := inMemory()
	src := cartontest.New(map[string][]byte{"model/.wh.x": []byte("x")}, nil)
	_, err := fresh(within(target)).PushSource(t.Context(), src, "m.carton", "h.io/m:1", PushOptions{Mapping: convert.Options{Image: true}})
	if !errors.Is(err, convert.ErrNoImage) || !strings.HasPrefix(err.Error(), "push m.carton: model/.wh.x: ") || target.pushes.Load() != 0 {
		t.Errorf("got %v and %d pushes", err, target.pushes.Load())
	}
}

// A registry that knows images only: the error says so, and what its hint names
// is taken, and comes back as the same carton.
func TestARegistryThatTakesImagesOnly(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{Quirks: registrytest.Quirks{ImagesOnly: true}})
	_, err := fresh().PushSource(t.Context(), sample(), "sample", r.Host+"/m:1", PushOptions{})
	if !errors.Is(err, registry.ErrManifest) || !strings.Contains(err.Error(), "most likely for its artifactType or media types: ") {
		t.Errorf("got %v", err)
	}
	if hints := fmt.Sprint(hint.Of(err)); !strings.Contains(hints, "Compat image-config pushes what such registries take") {
		t.Errorf("got the hints %q", hints)
	}
	for i, mapping := range []convert.Options{{}, {Layers: convert.FormTar}, {MediaTypes: convert.FamilyDraft}} {
		mapping.Compat = convert.CompatImageConfig
		ref := fmt.Sprintf("%s/m:%d", r.Host, i)
		if _, err := fresh().PushSource(t.Context(), sample(), "sample", ref, PushOptions{Mapping: mapping}); err != nil {
			t.Errorf("%+v: %v", mapping, err)
			continue
		}
		out := filepath.Join(t.TempDir(), "m.carton")
		result, err := fresh().Pull(t.Context(), ref, PullOptions{Output: out})
		if err != nil || result.ModelHash != sample().Manifest().ModelHash() || result.Regenerated {
			t.Errorf("%+v: got %+v, %v", mapping, result, err)
		}
	}
}

// One that takes no layers but an image's: the hint leads on to the image form
// alone, and from there nowhere.
func TestARegistryThatTakesNoOtherLayers(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{Quirks: registrytest.Quirks{ImagesOnly: true, ImageLayersOnly: true}})
	mapping := convert.Options{Compat: convert.CompatImageConfig}
	_, err := fresh().PushSource(t.Context(), sample(), "sample", r.Host+"/m:1", PushOptions{Mapping: mapping})
	if hints := hint.Of(err); !errors.Is(err, registry.ErrManifest) || len(hints) != 1 || !strings.HasPrefix(hints[0].String(), "convert.Options.Compat image pushes") {
		t.Errorf("with the config of an image: got %v with the hints %q", err, hints)
	}
	both := pushImage(t, sample(), "h.io/m:1", PushOptions{}, within(inMemory()))
	alone, err := fresh().PushSource(t.Context(), sample(), "sample", r.Host+"/m:1", PushOptions{Mapping: convert.Options{Compat: convert.CompatImage}})
	if err != nil || alone.Digest != both.Image.Digest || alone.Image != nil {
		t.Errorf("alone: got %+v, %v; want the image %s", alone, err, both.Image.Digest)
	}
	out := filepath.Join(t.TempDir(), "m.carton")
	if result, err := fresh().Pull(t.Context(), r.Host+"/m:1", PullOptions{Output: out}); err != nil || result.ModelHash != sample().Manifest().ModelHash() {
		t.Errorf("pulled back: got %+v, %v", result, err)
	}
	for name, opts := range map[string]PushOptions{
		"Readme":       {Mapping: convert.Options{Compat: convert.CompatImage, Readme: true}},
		"ImageSubject": {Mapping: convert.Options{Compat: convert.CompatImage, ImageSubject: true}},
		"Image":        {Mapping: convert.Options{Compat: convert.CompatImage, Image: true}},
	} {
		_, err := fresh().PushSource(t.Context(), sample(), "sample", r.Host+"/m:2", opts)
		if err == nil || !strings.Contains(err.Error(), "goes without Image") {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
	}
	r.Break(registrytest.Fault{Methods: "PUT", Path: "/manifests/", Effect: registrytest.Answer(400, "")})
	_, err = fresh().PushSource(t.Context(), sample(), "sample", r.Host+"/m:1", PushOptions{Mapping: convert.Options{Compat: convert.CompatImage}})
	if !errors.Is(err, registry.ErrManifest) || len(hint.Of(err)) != 0 {
		t.Errorf("an image already: got %v with the hints %q", err, hint.Of(err))
	}
}

// A push that stops between the tags leaves the artifact's where it was.
func TestTheArtifactMovesLast(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{})
	ref := r.Host + "/m:1"
	before := pushImage(t, sample(), ref, PushOptions{}).Digest
	r.Break(registrytest.Fault{Methods: "PUT", Path: "/manifests/1-image", Times: -1, Effect: registrytest.Answer(403, "")})
	_, err := fresh().PushSource(t.Context(), other(), "other", ref, PushOptions{Mapping: convert.Options{Image: true}})
	if !errors.Is(err, registry.ErrDenied) || !strings.Contains(err.Error(), "image form: ") {
		t.Errorf("got %v", err)
	}
	if got, _, _ := r.Manifest("m", "1"); got != before {
		t.Errorf("the tag moved to %s", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := fresh().PushSource(ctx, other(), "other", ref, PushOptions{Mapping: convert.Options{Image: true}}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want canceled", err)
	}
}

// Somebody tags another model while the image form is on its way.
func TestNoClobberBehindTheImageForm(t *testing.T) {
	target := &tagsBetween{watched: inMemory()}
	theirs := pushTo(t, target.watched, "h.io/m:elsewhere", other())
	target.then = func(ctx context.Context) error {
		desc, err := target.Resolve(ctx, "elsewhere")
		if err != nil {
			return err
		}
		return target.watched.Tag(ctx, desc, "1")
	}
	_, err := fresh(within(target)).PushSource(t.Context(), sample(), "sample", "h.io/m:1", PushOptions{Mapping: convert.Options{Image: true, AllowInvalid: true}, NoClobber: true})
	if !errors.Is(err, layout.ErrTagExists) {
		t.Errorf("got %v, want ErrTagExists", err)
	}
	if desc, err := target.Resolve(t.Context(), "1"); err != nil || desc.Digest != theirs.Digest {
		t.Errorf("the tag has moved: %v, %v", desc, err)
	}
}

// tagsBetween does something once the tag 1-image is there.
type tagsBetween struct {
	*watched
	then func(ctx context.Context) error
}

func (b *tagsBetween) Tag(ctx context.Context, desc ocispec.Descriptor, tag string) error {
	err := b.watched.Tag(ctx, desc, tag)
	if err == nil && tag == "1-image" {
		err = b.then(ctx)
	}
	return err
}
