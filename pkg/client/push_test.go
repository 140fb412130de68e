package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/google/go-cmp/cmp"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/registry/remote/auth"
)

// watched is an oras.Target that counts what is asked of it.
type watched struct {
	oras.Target
	pushes, fetches atomic.Int64
}

func (w *watched) Push(ctx context.Context, d ocispec.Descriptor, r io.Reader) error {
	w.pushes.Add(1)
	return w.Target.Push(ctx, d, r)
}

func (w *watched) Fetch(ctx context.Context, d ocispec.Descriptor) (io.ReadCloser, error) {
	w.fetches.Add(1)
	return w.Target.Fetch(ctx, d)
}

func sample() *cartontest.Source {
	return cartontest.New(map[string][]byte{
		"model/a.bin": bytes.Repeat([]byte("a"), 10_000), "model/b.bin": []byte("b"), "model/twin.bin": []byte("b"),
		carton.IndexName: []byte("tensor = []\n"),
	}, nil)
}

func inMemory() *watched { return &watched{Target: memory.New()} }

// fresh makes a client that knows nothing yet.
func fresh(opts ...Options) *Client {
	c, err := New(append(opts, Options{})[0])
	if err != nil {
		panic(err)
	}
	return c
}

// within are options of a client whose one repository is a target.
func within(target oras.Target) Options {
	return Options{Repository: func(context.Context, string, string) (layout.Store, error) { return layout.FromTarget(target), nil }}
}

func pushTo(t *testing.T, target oras.Target, ref string, src carton.Source) *PushResult {
	t.Helper()
	result, err := fresh(within(target)).PushSource(t.Context(), src, "sample", ref, PushOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestPushSaysWhatItDid(t *testing.T) {
	target, src := inMemory(), sample()
	first := pushTo(t, target, "h.io/m:1,latest", src)
	want := &PushResult{
		Reference: ":1", Tags: []string{"1", "latest"}, ModelHash: src.Manifest().ModelHash(),
		ArtifactType: "application/vnd.cnai.model.manifest.v1+json",
	}
	want.Reference = first.Reference
	var paths []string
	for _, l := range first.Layers {
		paths = append(paths, l.Paths...)
		if l.Status != "uploaded" || l.Size == 0 || l.MediaType == "" {
			t.Errorf("got the layer %+v, want it uploaded, with size and type", l)
		}
	}
	wantPaths := []string{"MANIFEST", "carton.toml", "model/a.bin", "model/b.bin", "model/twin.bin", carton.IndexName}
	if diff := cmp.Diff(wantPaths, paths); diff != "" {
		t.Errorf("paths: (-want +got)\n%s", diff)
	}
	got := *first
	got.Layers, got.Seconds, got.BytesUploaded, got.Digest, got.Size = nil, 0, 0, "", 0
	if diff := cmp.Diff(want, &got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// Two members of one content are one blob.
	if b, twin := first.Layers[3], first.Layers[4]; b.Digest != twin.Digest {
		t.Errorf("got the digests %s and %s of one content", b.Digest, twin.Digest)
	}
	if got, want := first.Bytes(), int64(10_013+len(cartontest.Info)+len(src.Manifest().Bytes())); got != want {
		t.Errorf("got %d bytes, want %d", got, want)
	}
	for _, tag := range []string{"1", "latest", first.Digest.String()} {
		desc, err := target.Resolve(t.Context(), tag)
		if err != nil || desc.Digest != first.Digest || desc.Size != first.Size {
			t.Errorf("%s: got %v, %v, want %s of %d bytes", tag, desc, err, first.Digest, first.Size)
		}
	}
}

func TestSecondPushSendsAndReadsNothing(t *testing.T) {
	target := inMemory()
	first := pushTo(t, target, "h.io/m:1", sample())
	pushes := target.pushes.Load()
	src := sample()
	second := pushTo(t, target, "h.io/m:1", src)
	if second.Digest != first.Digest || second.BytesUploaded != 0 || target.pushes.Load() != pushes {
		t.Errorf("got %s, %d bytes and %d pushes, want %s and none", second.Digest, second.BytesUploaded, target.pushes.Load()-pushes, first.Digest)
	}
	for _, path := range []string{"model/a.bin", "model/b.bin", "model/twin.bin"} {
		if n := src.Opens(path); n != 0 {
			t.Errorf("%s was opened %d times, want never", path, n)
		}
	}
}

func TestDryRunSendsNothing(t *testing.T) {
	target := inMemory()
	opts := PushOptions{DryRun: true}
	statuses := func() []string {
		t.Helper()
		result, err := fresh(within(target)).PushSource(t.Context(), sample(), "sample", "h.io/m:1", opts)
		if err != nil {
			t.Fatal(err)
		}
		if !result.DryRun || result.BytesUploaded != 0 {
			t.Errorf("got %+v, want a dry run", result)
		}
		var all []string
		for _, l := range result.Layers {
			all = append(all, l.Status)
		}
		return slices.Compact(all)
	}
	if got := statuses(); !slices.Equal(got, []string{"missing"}) || target.pushes.Load() != 0 {
		t.Errorf("got %q and %d pushes, want all missing and none", got, target.pushes.Load())
	}
	pushTo(t, target, "h.io/m:1", sample())
	if got := statuses(); !slices.Equal(got, []string{"exists"}) {
		t.Errorf("after a push: got %q, want all to exist", got)
	}
}

func TestPlannedIsCalledBeforeAnythingIsSent(t *testing.T) {
	target := inMemory()
	var planned []PushResult
	opts := PushOptions{Planned: func(r *PushResult) {
		planned = append(planned, *r)
		if n := target.pushes.Load(); n != 0 {
			t.Errorf("%d blobs were sent before", n)
		}
		for _, l := range r.Layers {
			if l.Status != "" {
				t.Errorf("got the status %s of %s, want none yet", l.Status, l.Paths)
			}
		}
	}}
	result, err := fresh(within(target)).PushSource(t.Context(), sample(), "sample", "h.io/m:1", opts)
	if err != nil {
		t.Fatal(err)
	}
	if len(planned) != 1 || planned[0].Digest != result.Digest {
		t.Errorf("got %d calls, want one with %s", len(planned), result.Digest)
	}
}

func TestNoClobber(t *testing.T) {
	target := inMemory()
	opts := PushOptions{NoClobber: true}
	for range 2 { // the second push changes nothing
		if _, err := fresh(within(target)).PushSource(t.Context(), sample(), "sample", "h.io/m:1", opts); err != nil {
			t.Fatal(err)
		}
	}
	other := cartontest.New(map[string][]byte{"model/a.bin": []byte("other")}, nil)
	if _, err := fresh(within(target)).PushSource(t.Context(), other, "other", "h.io/m:1", opts); !errors.Is(err, layout.ErrTagExists) {
		t.Errorf("got %v, want ErrTagExists", err)
	}
	if _, err := fresh(within(target)).PushSource(t.Context(), other, "other", "h.io/m:2", opts); err != nil {
		t.Errorf("another tag: %v", err)
	}
}

func TestPushToADigest(t *testing.T) {
	target := inMemory()
	var opts PushOptions
	_, err := fresh(within(target)).PushSource(t.Context(), sample(), "sample", "h.io/m@"+aDigest, opts)
	if err == nil || !strings.Contains(err.Error(), "want "+aDigest) || target.pushes.Load() != 0 {
		t.Fatalf("got %v and %d pushes, want an error that names %s and none", err, target.pushes.Load(), aDigest)
	}
	digest := pushTo(t, inMemory(), "h.io/m:1", sample()).Digest
	result := pushTo(t, target, "h.io/m@"+digest.String(), sample())
	if result.Digest != digest || result.Tags != nil {
		t.Errorf("got %s and the tags %q, want %s and none", result.Digest, result.Tags, digest)
	}
	for _, ref := range []string{"", "1,", "a b", "1,2/3", "sha256:abc"} {
		if _, err := fresh(within(target)).PushSource(t.Context(), sample(), "sample", "h.io/m:"+ref, opts); !errors.Is(err, location.ErrLocation) {
			t.Errorf("%q: got %v, want location.ErrLocation", ref, err)
		}
	}
}

func TestABrokenDescriptionIsPushedByForceOnly(t *testing.T) {
	broken := func() *cartontest.Source {
		return cartontest.New(map[string][]byte{
			"carton.toml": []byte("spec_version = 2\n[runner]\n"), "model/a.bin": []byte("a"),
		}, nil)
	}
	target := inMemory()
	var opts PushOptions
	_, err := fresh(within(target)).PushSource(t.Context(), broken(), "broken", "h.io/m:1", opts)
	if !errors.Is(err, carton.ErrVersion) || target.pushes.Load() != 0 {
		t.Errorf("got %v and %d pushes, want ErrVersion and none", err, target.pushes.Load())
	}
	if hints := hint.Of(err); !slices.ContainsFunc(hints, func(h hint.Hint) bool { return slices.Contains(h.Names(), hint.AllowInvalid) }) {
		t.Errorf("got the hints %q, want one that names AllowInvalid", hints)
	}
	opts.Mapping.AllowInvalid = true
	if _, err := fresh(within(target)).PushSource(t.Context(), broken(), "broken", "h.io/m:1", opts); err != nil {
		t.Errorf("by force: %v", err)
	}
}

func TestWrongContentIsNeverPushed(t *testing.T) {
	wrong := func(path string, _ int, r io.Reader) (io.Reader, error) {
		if path == "model/b.bin" {
			return strings.NewReader("B"), nil
		}
		return r, nil
	}
	wrongRange := func(_ context.Context, path string, off, n int64, r io.Reader) (io.Reader, error) {
		if path == "model/b.bin" {
			return strings.NewReader("B"[off:]), nil
		}
		return r, nil
	}
	for name, options := range map[string][]cartontest.Option{
		"checked by the source": {cartontest.WithOpen(wrong)},
		"checked by the store":  {cartontest.WithOpen(wrong), cartontest.WithRanges(wrongRange)},
	} {
		src := cartontest.New(map[string][]byte{"model/b.bin": []byte("b")}, nil, options...)
		for _, force := range []bool{false, true} {
			target := inMemory()
			_, err := fresh(within(target)).PushSource(t.Context(), src, "wrong.carton", "h.io/m:1", PushOptions{Mapping: convert.Options{AllowInvalid: force}})
			if !errors.Is(err, carton.ErrChecksum) || !strings.HasPrefix(err.Error(), "push wrong.carton: model/b.bin: ") {
				t.Errorf("%s, force %v: got %v, want push wrong.carton: model/b.bin: … wrapping ErrChecksum", name, force, err)
			}
			if _, err := target.Resolve(t.Context(), "1"); err == nil {
				t.Errorf("%s, force %v: the tag is there", name, force)
			}
		}
	}
}

// What lies in a zip as it is would be hashed by its reader, and by the store.
func TestAStoredMemberIsHashedOnce(t *testing.T) {
	opened := func(path string, _ int, r io.Reader) (io.Reader, error) {
		if path == "model/a.bin" {
			t.Errorf("%s was opened to be hashed", path)
		}
		return r, nil
	}
	src := cartontest.New(map[string][]byte{"model/a.bin": []byte("a")}, nil, cartontest.WithOpen(opened), cartontest.WithRanges(nil))
	pushTo(t, inMemory(), "h.io/m:1", src)
	if got := src.Opens("model/a.bin"); got != 1 {
		t.Errorf("model/a.bin was opened %d times, want once", got)
	}
}

// A member whose size nobody tells is read once to learn it, and once to send it.
func TestAnUnknownSizeIsLearntOnce(t *testing.T) {
	src := cartontest.New(map[string][]byte{"model/a.bin": []byte("a")}, nil, cartontest.WithUnknownSize("model/a.bin"))
	result := pushTo(t, inMemory(), "h.io/m:1", src)
	if n := src.Opens("model/a.bin"); n != 2 {
		t.Errorf("got %d reads, want 2", n)
	}
	if got := result.Layers[2].Size; got != 1 {
		t.Errorf("got the size %d, want 1", got)
	}
}

func TestMappingReachesTheArtifact(t *testing.T) {
	opts := PushOptions{Mapping: convert.Options{
		MediaTypes: convert.FamilyCNCF, Layers: convert.FormTar, Annotations: map[string]string{"k": "v"},
	}}
	result, err := fresh(within(inMemory())).PushSource(t.Context(), sample(), "sample", "h.io/m:1", opts)
	if err != nil {
		t.Fatal(err)
	}
	if want := "application/vnd.cncf.model.manifest.v1+json"; result.ArtifactType != want {
		t.Errorf("got the type %s, want %s", result.ArtifactType, want)
	}
	if got := result.Layers[2].MediaType; !strings.HasSuffix(got, ".tar") {
		t.Errorf("got a layer of type %s, want a tar", got)
	}
}

// Who embeds the library brings a client and credentials.
func TestOwnClientAndCredentials(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{Auth: registrytest.Auth{Users: map[string]string{"ann": "secret"}, Bearer: true}})
	dir := t.TempDir()
	file := filepath.Join(dir, "m.carton")
	if err := carton.Assemble(t.Context(), file, sample(), carton.AssembleOptions{}); err != nil {
		t.Fatal(err)
	}
	var requests atomic.Int64
	var opts Options
	opts.Registry.HTTPClient = &http.Client{Transport: counting{&requests}}
	opts.Registry.Credential = func(_ context.Context, host string) (auth.Credential, error) {
		if host != r.Host {
			t.Errorf("asked for the credentials of %s, want those of %s only", host, r.Host)
		}
		return auth.Credential{Username: "ann", Password: "secret"}, nil
	}
	if _, err := fresh(opts).Push(t.Context(), file, r.Host+"/org/m:1", PushOptions{}); err != nil {
		t.Fatal(err)
	}
	result, err := fresh(opts).Pull(t.Context(), r.Host+"/org/m:1", PullOptions{Output: filepath.Join(dir, "back.carton")})
	if err != nil {
		t.Fatal(err)
	}
	_, sent := r.Bytes("GET", "/blobs/")
	if result.BytesDownloaded != sent || sent == 0 {
		t.Errorf("got %d bytes downloaded, the registry sent %d", result.BytesDownloaded, sent)
	}
	if got, want := int(requests.Load()), len(r.Requests()); got < want {
		t.Errorf("%d requests came through the client, the registry got %d", got, want)
	}
	same(t, file, result.Path)
}

type counting struct{ n *atomic.Int64 }

func (c counting) RoundTrip(req *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return http.DefaultTransport.RoundTrip(req)
}

func same(t *testing.T, a, b string) {
	t.Helper()
	x, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := os.ReadFile(b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(x, y) {
		t.Errorf("%s and %s differ", a, b)
	}
}
