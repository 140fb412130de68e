package convert

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// imageModes are the options whose images are pinned.
func imageModes() map[string]Options {
	return map[string]Options{
		"tar":         {Image: true},
		"tar zstd":    {Image: true, BundleBelow: 100, Compress: CompressZstd},
		"tar gzip":    {Image: true, BundleBelow: 100, Compress: CompressGzip},
		"tar cncf":    {Image: true, MediaTypes: FamilyCNCF},
		"tar draft":   {Image: true, MediaTypes: FamilyDraft},
		"raw":         {Image: true, Layers: FormRaw},
		"tar created": {Image: true, Created: time.Unix(1700000000, 0)},
		"tar subject": {Image: true, ImageSubject: true},
		"tar compat":  {Image: true, Compat: CompatImageConfig},
	}
}

func formsOf(t testing.TB, src carton.Source, opts Options) *Forms {
	t.Helper()
	forms, err := Build(t.Context(), src, opts)
	if err != nil {
		t.Fatal(err)
	}
	return forms
}

func manifestOf(t testing.TB, a *layout.Artifact) *ocispec.Manifest {
	t.Helper()
	m, err := layout.ParseManifest(a.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func configOf(t testing.TB, l layout.Layer) string {
	t.Helper()
	r, err := l.Open(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The image of one carton never changes either.
func TestGoldenImages(t *testing.T) {
	file := filepath.Join("testdata", "golden-image.txt")
	digests := func(opts Options) string {
		forms := formsOf(t, kinds(), opts)
		return forms.Artifact.Digest.Encoded() + " artifact\n" + forms.Image.Digest.Encoded() + " image\n" +
			forms.Image.Config.Digest.Encoded() + " config\n" + forms.Image.Layers[0].Digest.Encoded() + " first layer\n"
	}
	if *update {
		var b strings.Builder
		for _, name := range sortedKeys(imageModes()) {
			fmt.Fprintf(&b, "== %s\n%s", name, digests(imageModes()[name]))
		}
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden := readGolden(t, file)
	if len(golden) != len(imageModes()) {
		t.Errorf("%s has %d modes, want %d", file, len(golden), len(imageModes()))
	}
	for name, opts := range imageModes() {
		if diff := cmp.Diff(golden[name], digests(opts)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestGoldenImageOfARealCarton(t *testing.T) {
	src, err := carton.Open(testenv.Foreign(t, "carton/test.carton"))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	forms := formsOf(t, src, Options{Image: true})
	const wantArtifact, wantImage = "sha256:1758a4e0211afd3b285d9d7999eaffdf631cd8d252726af75057fac1e8f9e46f",
		"sha256:b9b546790696a881ec0d1f9bdc0e804ca1f3ddd7e9481391259f3a159286b3a3"
	if forms.Artifact.Digest != wantArtifact || forms.Image.Digest != wantImage {
		t.Errorf("got the artifact %s and the image %s, want %s and %s", forms.Artifact.Digest, forms.Image.Digest, wantArtifact, wantImage)
	}
}

// What an image must be for a runtime to mount it, in every mode.
func TestAnImageIsOne(t *testing.T) {
	for name, opts := range imageModes() {
		t.Run(name, func(t *testing.T) {
			image := formsOf(t, kinds(), opts).Image
			m := manifestOf(t, image)
			if m.ArtifactType != "" || m.Config.MediaType != "application/vnd.oci.image.config.v1+json" {
				t.Errorf("got the artifactType %q and the config %s, want none and an image's", m.ArtifactType, m.Config.MediaType)
			}
			var config struct {
				Architecture, OS string
				RootFS           struct {
					Type    string
					DiffIDs []digest.Digest `json:"diff_ids"`
				}
			}
			if err := json.Unmarshal([]byte(configOf(t, image.Config)), &config); err != nil {
				t.Fatal(err)
			}
			if config.OS != "linux" || config.Architecture != "amd64" || config.RootFS.Type != "layers" {
				t.Errorf("got the config %+v", config)
			}
			if len(config.RootFS.DiffIDs) != len(m.Layers) {
				t.Fatalf("got %d diff_ids of %d layers", len(config.RootFS.DiffIDs), len(m.Layers))
			}
			for i, l := range image.Layers {
				kind := map[string]layout.Compression{
					"application/vnd.oci.image.layer.v1.tar":      layout.Uncompressed,
					"application/vnd.oci.image.layer.v1.tar+gzip": layout.Gzip,
					"application/vnd.oci.image.layer.v1.tar+zstd": layout.Zstd,
				}
				c, ok := kind[l.MediaType]
				if !ok {
					t.Errorf("layer %d is of type %s", i, l.MediaType)
				}
				if got := digest.FromString(untarred(t, l, c)); got != config.RootFS.DiffIDs[i] {
					t.Errorf("layer %d of type %s: got the diff_id %s, it unpacks to %s", i, l.MediaType, config.RootFS.DiffIDs[i], got)
				}
			}
		})
	}
}

// untarred reads a layer's tar.
func untarred(t testing.TB, l layout.Layer, c layout.Compression) string {
	t.Helper()
	blob, err := l.Open(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer blob.Close()
	plain, err := layout.Decompress(t.Context(), c, blob)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	b, err := io.ReadAll(plain)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestAnImageSharesTheTarsOfItsArtifact(t *testing.T) {
	for name, opts := range imageModes() {
		forms := formsOf(t, kinds(), opts)
		shared, own := 0, []string{}
		for _, l := range forms.Image.Layers {
			if slices.ContainsFunc(forms.Artifact.Layers, func(a layout.Layer) bool { return a.Digest == l.Digest }) {
				shared++
			} else {
				own = append(own, l.Name)
			}
		}
		want := []string{headName}
		if name == "raw" {
			want = nil
			if shared > 3 || len(own) < 10 {
				t.Errorf("raw: %d layers are shared, %d are not", shared, len(own))
			}
		}
		if diff := cmp.Diff(want, own); want != nil && diff != "" {
			t.Errorf("%s: layers that the artifact does not have: %s", name, diff)
		}
		if got, want := manifestOf(t, forms.Image).Annotations, manifestOf(t, forms.Artifact).Annotations; !cmp.Equal(got, want) {
			t.Errorf("%s: annotations of the image: %s", name, cmp.Diff(want, got))
		}
	}
}

// Without an image nothing about the artifact changes, and the artifact beside
// one is the one that its options make alone.
func TestAnImageChangesNoArtifact(t *testing.T) {
	for _, form := range []Form{FormRaw, FormTar} {
		alone, err := artifactOf(t.Context(), kinds(), Options{Layers: form})
		if err != nil {
			t.Fatal(err)
		}
		if got := formsOf(t, kinds(), Options{Layers: form, Image: true}).Artifact.Digest; got != alone.Digest {
			t.Errorf("%s: got %s beside an image, %s alone", form, got, alone.Digest)
		}
		if forms := formsOf(t, kinds(), Options{Layers: form}); forms.Image != nil || forms.Artifact.Digest != alone.Digest {
			t.Errorf("%s: got an image, or another artifact", form)
		}
	}
}

// unpackedImage returns what an image unpacks to: contents and targets, by path.
func unpackedImage(t testing.TB, image *layout.Artifact) (files, symlinks map[string]string) {
	t.Helper()
	files, symlinks = map[string]string{}, map[string]string{}
	for _, l := range image.Layers {
		f, _ := parseImageType(l.MediaType)
		r := tar.NewReader(strings.NewReader(untarred(t, l, f.compression())))
		for {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			mode := fs.FileMode(h.Mode) //nolint:gosec // of our own tar
			switch h.Typeflag {
			case tar.TypeDir:
				if mode != 0o755 {
					t.Errorf("%s has mode %o", h.Name, mode)
				}
			case tar.TypeSymlink:
				symlinks[h.Name] = h.Linkname
			default:
				b, _ := io.ReadAll(r)
				if _, again := files[h.Name]; again || mode != 0o644 || h.Uid != 0 {
					t.Errorf("%s has mode %o, is of user %d, or is there twice", h.Name, mode, h.Uid)
				}
				files[h.Name] = string(b)
			}
		}
	}
	return files, symlinks
}

// What a pod sees is the unpacked carton.
func TestAnImageUnpacksToTheCarton(t *testing.T) {
	files, symlinks := kindsOfMembers()
	long := "model/" + strings.Repeat(strings.Repeat("d", 100)+"/", 9) + strings.Repeat("n", 109)
	if len(long) != carton.MaxPathBytes {
		t.Fatalf("the long path has %d bytes", len(long))
	}
	files[long] = []byte("far down")
	files["model/"+strings.Repeat("\u00fc", 127)] = []byte("a name of 254 bytes")
	src := cartontest.New(files, symlinks)
	files[carton.ManifestName] = src.Manifest().Bytes()
	symlinks["models"] = "model" // no member
	for name, opts := range imageModes() {
		gotFiles, gotLinks := unpackedImage(t, formsOf(t, src, opts).Image)
		wantFiles := map[string]string{}
		for p, b := range files {
			wantFiles[p] = string(b)
		}
		if diff := cmp.Diff(wantFiles, gotFiles); diff != "" {
			t.Errorf("%s: files: %s", name, diff)
		}
		if diff := cmp.Diff(symlinks, gotLinks); diff != "" {
			t.Errorf("%s: symlinks: %s", name, diff)
		}
	}
}

// An image is read like an artifact, and as cheaply.
func TestAnImageIsReadAsACarton(t *testing.T) {
	want := kinds().Manifest().ModelHash()
	for name, opts := range imageModes() {
		s := newShelf()
		image := formsOf(t, kinds(), opts).Image
		desc := s.put(t, image)
		src := opened(t, s, desc, OpenOptions{})
		if n := len(s.requests); n != 1 {
			t.Errorf("%s: opened after %d requests for blobs, want 1: %q", name, n, s.requests)
		}
		report, err := carton.Verify(t.Context(), src, carton.VerifyOptions{})
		if err != nil || report.ModelHash != want || !report.OK() {
			t.Errorf("%s: got %+v, %v", name, report, err)
		}
		config, err := src.Config(t.Context())
		if err != nil || len(config.ModelFS.DiffIDs) != len(image.Layers) {
			t.Errorf("%s: got %+v, %v, want %d diffIds", name, config, err, len(image.Layers))
		}
	}
}

func TestANameThatDeletesIsRefused(t *testing.T) {
	for _, path := range []string{"model/.wh.x", "model/.wh..wh..opq", "misc/.wh.d/file"} {
		src := cartontest.New(map[string][]byte{path: []byte("a"), "model/b": []byte("b")}, nil)
		_, err := Build(t.Context(), src, Options{Image: true})
		if !errors.Is(err, ErrNoImage) || !strings.HasPrefix(err.Error(), path+": ") {
			t.Errorf("got %v, want ErrNoImage of %s", err, path)
		}
		if got := src.Opened(); len(got) > 1 { // carton.toml
			t.Errorf("%s: %q was read before", path, got)
		}
		a, err := artifactOf(t.Context(), src, Options{})
		if err != nil {
			t.Errorf("%s, without an image: %v", path, err)
			continue
		}
		s := newShelf()
		s.put(t, a)
		if _, err := Image(t.Context(), opened(t, s, a.Descriptor, OpenOptions{}), Options{}); !errors.Is(err, ErrNoImage) {
			t.Errorf("%s, stored: got %v, want ErrNoImage", path, err)
		}
	}
	// ".wh" alone and a name that only holds it delete nothing.
	harmless := cartontest.New(map[string][]byte{"model/.wh": []byte("a"), "model/a.wh.b": []byte("b"), "model/.WH.c": nil}, nil)
	if _, err := Build(t.Context(), harmless, Options{Image: true}); err != nil {
		t.Error(err)
	}
}

func TestArchitecture(t *testing.T) {
	for triples, want := range map[string]string{
		"":                                           `"architecture":"amd64"`,
		"x86_64-unknown-linux-gnu":                   `"architecture":"amd64"`,
		"x86_64h-apple-darwin":                       `"architecture":"amd64"`,
		"aarch64-apple-darwin":                       `"architecture":"arm64"`,
		"arm64-apple-ios":                            `"architecture":"arm64"`,
		"armv7-unknown-linux":                        `"architecture":"arm","variant":"v7"`,
		"armv6-unknown-linux":                        `"architecture":"arm","variant":"v6"`,
		"i686-pc-windows-msvc":                       `"architecture":"386"`,
		"riscv64gc-unknown-linux":                    `"architecture":"riscv64"`,
		"powerpc64le-unknown-linux":                  `"architecture":"ppc64le"`,
		"powerpc64-unknown-linux":                    `"architecture":"ppc64"`,
		"s390x-unknown-linux-gnu":                    `"architecture":"s390x"`,
		"loongarch64-unknown-linux":                  `"architecture":"loong64"`,
		"wasm32-unknown-unknown":                     `"architecture":"wasm"`,
		"xtensa-unknown-none":                        `"architecture":"amd64"`,
		"aarch64-apple-darwin aarch64-unknown-linux": `"architecture":"amd64"`,
	} {
		info := &carton.Info{RequiredPlatforms: strings.Fields(triples)}
		got := configOf(t, imageConfig(info, time.Time{}, []digest.Digest{"sha256:ab"}))
		if want := `{` + want + `,"os":"linux","rootfs":{"type":"layers","diff_ids":["sha256:ab"]}}`; got != want {
			t.Errorf("%s: got %s, want %s", triples, got, want)
		}
	}
	got := configOf(t, imageConfig(&carton.Info{}, time.Unix(1700000000, 0), nil))
	if !strings.HasPrefix(got, `{"created":"2023-11-14T22:13:20Z","architecture"`) {
		t.Errorf("got %s", got)
	}
}

// What no runtime would mount is not made.
func TestImagesThatAreNone(t *testing.T) {
	image := formsOf(t, kinds(), Options{Image: true}).Image
	spec := func() *imageSpec {
		s := &imageSpec{info: &carton.Info{}}
		for _, l := range image.Layers {
			s.layers = append(s.layers, imageLayer{Layer: l, diffID: l.Digest})
		}
		return s
	}
	for text, change := range map[string]func(*imageSpec){
		"has 121 layers, want at most 120": func(s *imageSpec) { s.layers = slices.Repeat(s.layers[:1], 121) },
		`type "application/vnd.cnai`:       func(s *imageSpec) { s.layers[0].MediaType = "application/vnd.cnai.model.doc.v1.tar" },
		"has another digest":               func(s *imageSpec) { s.layers[0].diffID = s.layers[1].diffID },
		"was not read":                     func(s *imageSpec) { s.layers[0].diffID = "" },
		`got the digest "x"`:               func(s *imageSpec) { s.layers[0].diffID = "x" },
	} {
		s := spec()
		change(s)
		if _, err := s.build(); !errors.Is(err, layout.ErrFormat) || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %s", err, text)
		}
	}
	if _, err := spec().build(); err != nil {
		t.Errorf("unchanged: %v", err)
	}
}

// The image alone is the one that is beside the artifact otherwise, whoever is
// asked for it.
func TestCompatImage(t *testing.T) {
	for _, layers := range []Form{FormTar, FormRaw} {
		for _, compress := range []Compression{CompressNone, CompressZstd} {
			both, err := Build(t.Context(), kinds(), Options{Image: true, Layers: layers, Compress: compress})
			if err != nil {
				t.Fatal(err)
			}
			opts := Options{Compat: CompatImage, Layers: layers, Compress: compress}
			alone, err := Build(t.Context(), kinds(), opts)
			if err != nil || alone.Image != nil || alone.Artifact.Digest != both.Image.Digest {
				t.Fatalf("%s, %s: got %+v, %v; want the image %s and no other", layers, compress, alone, err, both.Image.Digest)
			}
		}
	}
	for name, opts := range map[string]Options{
		"image": {Image: true}, "subject": {ImageSubject: true}, "readme": {Readme: true},
	} {
		opts.Compat = CompatImage
		if _, err := Build(t.Context(), kinds(), opts); err == nil || !strings.Contains(err.Error(), "goes without") {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
	}
}
