package client

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// stored is an artifact in a registry that a test breaks by hand.
type stored struct {
	*registrytest.Registry
	t        *testing.T
	manifest ocispec.Manifest
}

// iris is the carton of these tests.
func iris() *cartontest.Source {
	return cartontest.New(map[string][]byte{
		"model/a.bin": []byte("weights"), "model/run.py": []byte("import os\n"), carton.IndexName: []byte("tensor = []\n"),
	}, map[string]string{"model/l.py": "run.py"})
}

const sourceRepo = "models/iris"

// storeTars pushes a carton in tar layers, and takes its image manifest in hand.
func storeTars(t *testing.T, mapping convert.Options) *stored {
	t.Helper()
	s := &stored{Registry: registrytest.New(t, registrytest.Config{}), t: t}
	mapping.Layers = convert.FormTar
	if _, err := fresh().PushSource(t.Context(), iris(), "iris", s.Host+"/"+sourceRepo+":1", PushOptions{Mapping: mapping}); err != nil {
		t.Fatal(err)
	}
	_, raw, _ := s.Manifest(sourceRepo, "1")
	if err := json.Unmarshal(raw, &s.manifest); err != nil {
		t.Fatal(err)
	}
	return s
}

// layer returns the layer of a title.
func (s *stored) layer(title string) *ocispec.Descriptor {
	s.t.Helper()
	i := slices.IndexFunc(s.manifest.Layers, func(d ocispec.Descriptor) bool {
		return d.Annotations[ocispec.AnnotationTitle] == title
	})
	if i < 0 {
		s.t.Fatalf("there is no layer %s", title)
	}
	return &s.manifest.Layers[i]
}

// replace gives a layer other bytes, under their own digest.
func (s *stored) replace(d *ocispec.Descriptor, b []byte) {
	now := s.AddBlob(sourceRepo, b)
	d.Digest, d.Size = now.Digest, now.Size
}

// put stores the image manifest under the tag 1.
func (s *stored) put() {
	raw, err := json.Marshal(s.manifest)
	if err != nil {
		s.t.Fatal(err)
	}
	s.AddManifest(sourceRepo, ocispec.MediaTypeImageManifest, raw, "1")
}

// tarOf writes a tar of headers, each with its content.
func tarOf(t *testing.T, entries ...tarEntry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := e.Header
		h.Size = int64(len(e.content))
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type tarEntry struct {
	tar.Header
	content string
}

// symlink is the header of one.
func symlink(name, target string) tar.Header {
	return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}
}

func file(name, content string) tarEntry {
	return tarEntry{tar.Header{Typeflag: tar.TypeReg, Name: name}, content}
}

// weights is the tar of model/a.bin, as the mapping makes it but for what a test
// changes.
func (s *stored) weights() []byte {
	b, ok := s.Blob(sourceRepo, s.layer(weightsTar).Digest)
	if !ok {
		s.t.Fatal("no weights")
	}
	return slices.Clone(b)
}

const weightsTar = ".bundles/weight-1.tar"

// header rewrites the header of the only file of a tar.
func header(t *testing.T, b []byte, change func(h []byte)) []byte {
	t.Helper()
	const at = 512 // behind the folder's
	h := b[at : at+512]
	change(h)
	copy(h[148:], "        ")
	sum := 0
	for _, c := range h {
		sum += int(c)
	}
	copy(h[148:], []byte{
		'0', '0' + byte(sum>>12&7), '0' + byte(sum>>9&7), '0' + byte(sum>>6&7), '0' + byte(sum>>3&7), '0' + byte(sum&7), 0, ' ',
	})
	return b
}

// badTars are artifacts with a tar layer that no cluster should mount. unlisted
// takes away the annotation that says what the tar holds.
var badTars = map[string]func(t *testing.T, s *stored) (tar []byte, unlisted bool){
	"other bytes": func(_ *testing.T, s *stored) ([]byte, bool) {
		return bytes.Replace(s.weights(), []byte("weights"), []byte("weighed"), 1), false
	},
	"other bytes, unlisted": func(_ *testing.T, s *stored) ([]byte, bool) {
		return bytes.Replace(s.weights(), []byte("weights"), []byte("weighed"), 1), true
	},
	"setuid": func(t *testing.T, s *stored) ([]byte, bool) {
		return header(t, s.weights(), func(h []byte) { copy(h[100:], "0004755") }), false
	},
	"setuid, unlisted": func(t *testing.T, s *stored) ([]byte, bool) {
		return header(t, s.weights(), func(h []byte) { copy(h[100:], "0004755") }), true
	},
	"for everybody to write, unlisted": func(t *testing.T, s *stored) ([]byte, bool) {
		return header(t, s.weights(), func(h []byte) { copy(h[100:], "0000666") }), true
	},
	"another owner, unlisted": func(t *testing.T, s *stored) ([]byte, bool) {
		return header(t, s.weights(), func(h []byte) { copy(h[108:], "0001750") }), true
	},
	"a time of its own": func(t *testing.T, s *stored) ([]byte, bool) {
		return header(t, s.weights(), func(h []byte) { copy(h[136:], "14000000000") }), false
	},
	"a device": func(t *testing.T, _ *stored) ([]byte, bool) {
		return tarOf(t, file("model/a.bin", "weights"), tarEntry{Header: tar.Header{Typeflag: tar.TypeChar, Name: "model/null", Devmajor: 1, Devminor: 3}}), true
	},
	"a hard link": func(t *testing.T, _ *stored) ([]byte, bool) {
		return tarOf(t, file("model/a.bin", "weights"), tarEntry{Header: tar.Header{Typeflag: tar.TypeLink, Name: "model/b", Linkname: "model/a.bin"}}), true
	},
	"a FIFO": func(t *testing.T, _ *stored) ([]byte, bool) {
		return tarOf(t, file("model/a.bin", "weights"), tarEntry{Header: tar.Header{Typeflag: tar.TypeFifo, Name: "model/b"}}), true
	},
	"a name that deletes": func(t *testing.T, _ *stored) ([]byte, bool) {
		return tarOf(t, file("model/.wh.run.py", ""), file("model/a.bin", "weights")), true
	},
	"a folder that deletes": func(t *testing.T, _ *stored) ([]byte, bool) {
		return tarOf(t, tarEntry{Header: tar.Header{Typeflag: tar.TypeDir, Name: "model/.wh..wh..opq/", Mode: 0o755}}, file("model/a.bin", "weights")), true
	},
	"a name outside": func(t *testing.T, _ *stored) ([]byte, bool) {
		return tarOf(t, file("../x", "x"), file("model/a.bin", "weights")), true
	},
	"an absolute name": func(t *testing.T, _ *stored) ([]byte, bool) {
		return tarOf(t, file("/etc/x", "x"), file("model/a.bin", "weights")), true
	},
	"a second MANIFEST": func(t *testing.T, _ *stored) ([]byte, bool) {
		return tarOf(t, file(carton.ManifestName, "x"), file("model/a.bin", "weights")), true
	},
	"a second carton.toml": func(t *testing.T, _ *stored) ([]byte, bool) {
		return tarOf(t, file(carton.InfoName, "x"), file("model/a.bin", "weights")), true
	},
	"a member twice": func(t *testing.T, _ *stored) ([]byte, bool) {
		return tarOf(t, file("model/a.bin", "weights"), file("model/a.bin", "weighed")), true
	},
	"more behind the end": func(_ *testing.T, s *stored) ([]byte, bool) { return append(s.weights(), s.weights()...), true },
	"no end":              func(_ *testing.T, s *stored) ([]byte, bool) { b := s.weights(); return b[:len(b)-1024], true },
	"a gap with bytes in it": func(_ *testing.T, s *stored) ([]byte, bool) {
		b := s.weights()
		b[1024+100] = 'x' // behind "weights"
		return b, false
	},
	"a gap with bytes in it, unlisted": func(_ *testing.T, s *stored) ([]byte, bool) {
		b := s.weights()
		b[1024+100] = 'x'
		return b, true
	},
	"file capabilities": func(t *testing.T, _ *stored) ([]byte, bool) {
		e := file("model/a.bin", "weights")
		e.PAXRecords = map[string]string{"SCHILY.xattr.security.capability": "\x01\x00\x00\x02\x00\x20\x00\x00"}
		return tarOf(t, e), true
	},
}

// What carton-oci publishes it has verified: no such layer gets a tag, in an
// image or in a copy, in the same repository, another one, another registry or a
// folder.
func TestNothingUnverifiedIsPublished(t *testing.T) {
	testenv.Heavy(t)
	for name, make := range badTars {
		t.Run(name, func(t *testing.T) {
			s := storeTars(t, convert.Options{})
			b, unlisted := make(t, s)
			d := s.layer(weightsTar)
			s.replace(d, b)
			if unlisted {
				delete(d.Annotations, convert.AnnotationMembers)
			}
			s.put()
			s.publishesNothing()
		})
	}
}

// isContent reports whether an error has the exit code of broken content.
func isContent(err error) bool {
	for _, kind := range []error{
		carton.ErrFormat, carton.ErrVersion, carton.ErrChecksum, carton.ErrInsecurePath, carton.ErrLimit, layout.ErrFormat, layout.ErrDigest, layout.ErrLimit,
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// publishesNothing tries every way to publish the artifact.
func (s *stored) publishesNothing() {
	s.t.Helper()
	ref := s.Host + "/" + sourceRepo + ":1"
	other := registrytest.New(s.t, registrytest.Config{})
	lay := "oci:" + filepath.Join(s.t.TempDir(), "lay")
	check := func(what string, err error) {
		s.t.Helper()
		if !isContent(err) {
			s.t.Errorf("%s: got %v, want broken content", what, err)
		}
	}
	_, err := fresh().Image(s.t.Context(), ref, ImageOptions{})
	check("image", err)
	for _, to := range []string{s.Host + "/" + sourceRepo + ":2", s.Host + "/other/repo:2", other.Host + "/other/repo:2", lay + ":2"} {
		for _, image := range []bool{false, true} {
			_, err := fresh().Push(s.t.Context(), ref, to, PushOptions{Mapping: convert.Options{Image: image}})
			check("push to "+to, err)
			// Another form is made of verified members, or not at all.
			again := PushOptions{Mapping: convert.Options{MediaTypes: convert.FamilyCNCF, Layers: convert.FormTar, Image: image}}
			good, err := fresh(within(inMemory())).PushSource(s.t.Context(), iris(), "iris", "h.io/m:1", again)
			if err != nil {
				s.t.Fatal(err)
			}
			made, err := fresh().Push(s.t.Context(), ref, strings.TrimSuffix(to, "2")+"made", again)
			if err == nil && (made.Digest != good.Digest || made.Image != nil && made.Image.Digest != good.Image.Digest) {
				s.t.Errorf("push of another form to %s: got %s, want %s", to, made.Digest, good.Digest)
			} else if err != nil {
				check("push of another form to "+to, err)
			}
		}
	}
	archive := filepath.Join(s.t.TempDir(), "m.oci.tar")
	for _, image := range []bool{false, true} {
		_, err := fresh().Push(s.t.Context(), ref, archive+":2", PushOptions{Mapping: convert.Options{Image: image}})
		check("push to an archive", err)
	}
	if _, err := os.Lstat(archive); err == nil {
		s.t.Error("an archive was published")
	}
	for _, at := range []struct {
		r    *registrytest.Registry
		repo string
	}{{s.Registry, sourceRepo}, {s.Registry, "other/repo"}, {other, "other/repo"}} {
		for _, tag := range []string{"1-image", "2", "2-image"} {
			if dgst, _, ok := at.r.Manifest(at.repo, tag); ok {
				s.t.Errorf("%s:%s was published: %s", at.repo, tag, dgst)
			}
		}
	}
	for _, tag := range []string{":2", ":2-image"} {
		if _, err := fresh().Resolve(s.t.Context(), lay+tag); err == nil {
			s.t.Errorf("%s was published", tag)
		}
	}
}

// A registry that holds other bytes under a layer's digest is not believed.
func TestARegistryThatHoldsOtherBytes(t *testing.T) {
	for _, compress := range []convert.Compression{convert.CompressNone, convert.CompressGzip, convert.CompressZstd} {
		t.Run(string(compress), func(t *testing.T) {
			s := storeTars(t, convert.Options{Compress: compress, BundleBelow: 100})
			d := s.layer(".bundles/code-1.tar")
			b, _ := s.Blob(sourceRepo, d.Digest)
			b = slices.Clone(b)
			b[len(b)/2] ^= 0xff
			s.Corrupt(sourceRepo, d.Digest, b)
			_, err := fresh().Image(t.Context(), s.Host+"/"+sourceRepo+":1", ImageOptions{})
			if !isContent(err) {
				t.Errorf("image: got %v", err)
			}
			from, lay := s.Host+"/"+sourceRepo+":1", "oci:"+filepath.Join(t.TempDir(), "lay")
			for _, to := range []string{s.Host + "/" + sourceRepo + ":2", s.Host + "/other/repo:2", lay + ":2"} {
				_, err := fresh().Push(t.Context(), from, to, PushOptions{})
				if !isContent(err) || !strings.HasPrefix(err.Error(), "push "+from+": ") {
					t.Errorf("push to %s: got %v, want the blame on %s", to, err, from)
				}
			}
			if n := s.Count("PUT", "/manifests/"); n != 1 {
				t.Errorf("%d manifests were put, want the first alone", n)
			}
		})
	}
}

// The config of an artifact says what its layers are without compression: one
// that is wrong is copied nowhere, and does not reach the image.
func TestAConfigThatLiesAboutLayers(t *testing.T) {
	for name, mapping := range map[string]convert.Options{
		"model config": {Compress: convert.CompressGzip, BundleBelow: 100},
		"image config": {Compress: convert.CompressGzip, BundleBelow: 100, Compat: convert.CompatImageConfig},
	} {
		t.Run(name, func(t *testing.T) {
			s := storeTars(t, mapping)
			ref := s.Host + "/" + sourceRepo + ":1"
			honest, err := fresh().Image(t.Context(), ref, ImageOptions{Tag: "honest"})
			if err != nil {
				t.Fatal(err)
			}
			config, _ := s.Blob(sourceRepo, s.manifest.Config.Digest)
			gz := slices.IndexFunc(s.manifest.Layers, func(d ocispec.Descriptor) bool { return strings.HasSuffix(d.MediaType, "gzip") })
			ids := struct {
				ModelFS struct {
					DiffIDs []digest.Digest `json:"diffIds"`
				} `json:"modelfs"`
				RootFS struct {
					DiffIDs []digest.Digest `json:"diff_ids"`
				} `json:"rootfs"`
			}{}
			if err := json.Unmarshal(config, &ids); err != nil {
				t.Fatal(err)
			}
			id := append(ids.ModelFS.DiffIDs, ids.RootFS.DiffIDs...)[gz]
			s.replace(&s.manifest.Config, bytes.Replace(config, []byte(id), []byte(digest.FromString("other")), 1))
			s.put()
			if got, err := fresh().Image(t.Context(), ref, ImageOptions{}); err != nil || got.Digest != honest.Digest {
				t.Errorf("image: got %+v, %v, want %s", got, err, honest.Digest)
			}
			if _, err := fresh().Push(t.Context(), ref, s.Host+"/other/repo:1", PushOptions{}); !errors.Is(err, layout.ErrDigest) {
				t.Errorf("push: got %v, want %v", err, layout.ErrDigest)
			}
		})
	}
}
