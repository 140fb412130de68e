package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/klauspost/compress/gzip"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// gzipped compresses b.
func gzipped(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// badArtifacts are artifacts that lie elsewhere than in a tar's bytes.
var badArtifacts = map[string]func(t *testing.T, s *stored){
	"a list of other sizes": func(_ *testing.T, s *stored) {
		d := s.layer(weightsTar)
		line, _, _ := strings.Cut(d.Annotations[convert.AnnotationMembers], ":")
		d.Annotations[convert.AnnotationMembers] = line + ":8"
	},
	"a list of another member": func(_ *testing.T, s *stored) {
		a, b := s.layer(weightsTar), s.layer(".bundles/code-1.tar")
		a.Annotations[convert.AnnotationMembers], b.Annotations[convert.AnnotationMembers] =
			b.Annotations[convert.AnnotationMembers], a.Annotations[convert.AnnotationMembers]
	},
	"a size that is not the blob's": func(_ *testing.T, s *stored) {
		s.layer(weightsTar).Size++
	},
	"gzip with a second member": func(t *testing.T, s *stored) {
		d := s.layer(weightsTar)
		d.MediaType += "+gzip"
		s.replace(d, append(gzipped(t, s.weights()), gzipped(t, []byte("more"))...))
	},
	"gzip with bytes behind it": func(t *testing.T, s *stored) {
		d := s.layer(weightsTar)
		d.MediaType += "+gzip"
		s.replace(d, append(gzipped(t, s.weights()), "more"...))
	},
	"a gzip that is none": func(_ *testing.T, s *stored) { s.layer(weightsTar).MediaType += "+gzip" },
	"a tar that is marked as an extra": func(t *testing.T, s *stored) {
		s.manifest.Layers = append(s.manifest.Layers, ocispec.Descriptor{
			MediaType: s.layer(weightsTar).MediaType, Annotations: map[string]string{convert.AnnotationExtra: "true", ocispec.AnnotationTitle: "x"},
		})
		s.replace(&s.manifest.Layers[len(s.manifest.Layers)-1], tarOf(t, file("model/evil.py", "evil")))
	},
	"an image layer that is marked as an extra": func(t *testing.T, s *stored) {
		s.manifest.Layers = append(s.manifest.Layers, ocispec.Descriptor{
			MediaType: ocispec.MediaTypeImageLayer, Annotations: map[string]string{convert.AnnotationExtra: "true"},
		})
		s.replace(&s.manifest.Layers[len(s.manifest.Layers)-1], tarOf(t, file("model/evil.py", "evil")))
	},
	"another model hash": func(_ *testing.T, s *stored) {
		s.manifest.Annotations[convert.AnnotationModelHash] = strings.Repeat("0", 64)
	},
	"another mapping":           func(_ *testing.T, s *stored) { s.manifest.Annotations[convert.AnnotationMapping] = "2" },
	"no MANIFEST":               func(_ *testing.T, s *stored) { s.manifest.Layers = s.manifest.Layers[1:] },
	"MANIFEST of another model": func(_ *testing.T, s *stored) { s.replace(s.layer(carton.ManifestName), other().Manifest().Bytes()) },
	"a member less":             func(_ *testing.T, s *stored) { s.manifest.Layers = s.manifest.Layers[:len(s.manifest.Layers)-1] },
	"a layer twice":             func(_ *testing.T, s *stored) { s.manifest.Layers = append(s.manifest.Layers, *s.layer(weightsTar)) },
	"a layer of an unknown type": func(_ *testing.T, s *stored) {
		s.layer(weightsTar).MediaType = "application/vnd.example.layer"
	},
	"data that is not the layer": func(_ *testing.T, s *stored) { s.layer(weightsTar).Data = []byte("x") },
	"other bytes in the symlinks": func(_ *testing.T, s *stored) {
		d := s.layer(".bundles/code-2.tar")
		b, _ := s.Blob(sourceRepo, d.Digest)
		s.replace(d, bytes.Replace(b, []byte("run.py"), []byte("run.pz"), 1))
	},
	"symlinks that lead out": func(t *testing.T, s *stored) {
		b := tarOf(t, tarEntry{Header: symlink("model/l.py", "../../etc/passwd")})
		s.replace(s.layer(".bundles/code-2.tar"), b)
	},
	"symlinks with a mode of their own": func(t *testing.T, s *stored) {
		b := tarOf(t, tarEntry{Header: symlink("model/l.py", "run.py")})
		s.replace(s.layer(".bundles/code-2.tar"), b)
	},
}

func TestNoLieIsPublished(t *testing.T) {
	testenv.Heavy(t)
	for name, change := range badArtifacts {
		t.Run(name, func(t *testing.T) {
			s := storeTars(t, convert.Options{})
			change(t, s)
			s.put()
			s.publishesNothing()
		})
	}
}

// An extra that is no copy of anything is not copied on. It reaches no image.
func TestAnExtraOfSomebodyElse(t *testing.T) {
	s := storeTars(t, convert.Options{})
	extra := *s.layer(carton.InfoName)
	extra.Annotations = map[string]string{convert.AnnotationExtra: "true", ocispec.AnnotationTitle: "README.md"}
	s.manifest.Layers = append(s.manifest.Layers, extra)
	s.replace(&s.manifest.Layers[len(s.manifest.Layers)-1], []byte("# Not what the carton says\n"))
	s.put()
	ref := s.Host + "/" + sourceRepo + ":1"
	if _, err := fresh().Push(t.Context(), ref, s.Host+"/other:1", PushOptions{}); !errors.Is(err, layout.ErrFormat) {
		t.Errorf("got %v, want %v", err, layout.ErrFormat)
	}
	image, err := fresh().Image(t.Context(), ref, ImageOptions{})
	if err != nil || image.Layers != len(s.manifest.Layers)-2 { // MANIFEST and carton.toml are one
		t.Errorf("got %+v, %v", image, err)
	}
}

// A layer of an image is mounted, whatever its mark: one that is a member's bytes,
// and so bound to MANIFEST by its digest, is no extra either.
func TestAnImageHasNoExtras(t *testing.T) {
	evil := tarOf(t, file("model/evil.py", "evil"))
	src := cartontest.New(map[string][]byte{"model/a.bin": evil}, nil)
	s := &stored{Registry: registrytest.New(t, registrytest.Config{}), t: t}
	ref := s.Host + "/" + sourceRepo + ":1"
	if _, err := fresh().PushSource(t.Context(), src, "m", ref, PushOptions{Mapping: convert.Options{Compat: convert.CompatImage}}); err != nil {
		t.Fatal(err)
	}
	_, raw, _ := s.Manifest(sourceRepo, "1")
	if err := json.Unmarshal(raw, &s.manifest); err != nil {
		t.Fatal(err)
	}
	config, _ := s.Blob(sourceRepo, s.manifest.Config.Digest)
	layer := s.AddBlob(sourceRepo, evil)
	layer.MediaType, layer.Annotations = ocispec.MediaTypeImageLayer, map[string]string{convert.AnnotationExtra: "true"}
	s.manifest.Layers = append(s.manifest.Layers, layer)
	s.replace(&s.manifest.Config, bytes.Replace(config, []byte(`"]`), []byte(`","`+layer.Digest.String()+`"]`), 1))
	s.put()
	if _, err := fresh().Push(t.Context(), ref, s.Host+"/other:1", PushOptions{}); !errors.Is(err, layout.ErrFormat) {
		t.Errorf("push: got %v, want %v", err, layout.ErrFormat)
	}
	if _, err := fresh().Open(t.Context(), ref, OpenOptions{}); !errors.Is(err, layout.ErrFormat) {
		t.Errorf("open: got %v, want %v", err, layout.ErrFormat)
	}
}

// A tar that is a member too has one digest twice: as a raw layer it is right, and
// as a tar layer it is judged all the same.
func TestATarThatIsAMemberToo(t *testing.T) {
	evil := tarOf(t, file("model/evil.py", "evil"))
	src := cartontest.New(map[string][]byte{"model/a.bin": evil, "model/evil.py": []byte("good")}, nil)
	s := &stored{Registry: registrytest.New(t, registrytest.Config{}), t: t}
	if _, err := fresh().PushSource(t.Context(), src, "m", s.Host+"/"+sourceRepo+":1", PushOptions{}); err != nil {
		t.Fatal(err)
	}
	_, raw, _ := s.Manifest(sourceRepo, "1")
	if err := json.Unmarshal(raw, &s.manifest); err != nil {
		t.Fatal(err)
	}
	code := s.layer("model/evil.py")
	*code = ocispec.Descriptor{
		MediaType: "application/vnd.cnai.model.code.v1.tar", Digest: digest.FromBytes(evil), Size: int64(len(evil)),
		Annotations: map[string]string{ocispec.AnnotationTitle: ".bundles/code-1.tar"},
	}
	for _, mapped := range []bool{true, false} {
		if !mapped {
			s.manifest.Annotations = nil
		}
		s.put()
		s.publishesNothing()
	}
}

// What a tag stands for is asked once: one that moves in between changes nothing.
func TestATagThatMovesUnderACopy(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{})
	first, err := fresh().PushSource(t.Context(), documented(), "m", r.Host+"/m:1", PushOptions{Mapping: convert.Options{Layers: convert.FormTar}})
	if err != nil {
		t.Fatal(err)
	}
	second, err := fresh().PushSource(t.Context(), other(), "n", r.Host+"/m:2", PushOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, moved, _ := r.Manifest("m", "2")
	var asked atomic.Int64
	r.Break(registrytest.Fault{Methods: http.MethodGet, Path: "/m/manifests/1", Times: -1, Effect: func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		next.ServeHTTP(w, req)
		if asked.Add(1) == 1 {
			r.AddManifest("m", ocispec.MediaTypeImageManifest, moved, "1")
		}
	}})
	result, err := fresh().Push(t.Context(), r.Host+"/m:1", r.Host+"/n:1", PushOptions{})
	if err != nil || result.Digest != first.Digest || result.Digest == second.Digest {
		t.Errorf("got %+v, %v, want %s", result, err, first.Digest)
	}
}

// A blob that is good when it is judged and another when it is sent, or the other
// way round, is published by nobody.
func TestABlobThatChangesBetweenReads(t *testing.T) {
	for _, compress := range []convert.Compression{convert.CompressNone, convert.CompressGzip} {
		for _, bad := range []int64{1, 2} {
			s := storeTars(t, convert.Options{Compress: compress, BundleBelow: 100})
			d := s.layer(".bundles/code-1.tar")
			good, _ := s.Blob(sourceRepo, d.Digest)
			wrong := bytes.Clone(good)
			wrong[len(wrong)/2] ^= 0xff
			var asked atomic.Int64
			s.Break(registrytest.Fault{Methods: http.MethodGet, Path: d.Digest.String(), Times: -1, Effect: func(w http.ResponseWriter, req *http.Request, next http.Handler) {
				b := good
				if asked.Add(1) == bad {
					b = wrong
				}
				s.Corrupt(sourceRepo, d.Digest, b)
				next.ServeHTTP(w, req)
			}})
			there := registrytest.New(t, registrytest.Config{})
			_, err := fresh().Push(t.Context(), s.Host+"/"+sourceRepo+":1", there.Host+"/m:1", PushOptions{})
			if published, _, ok := there.Manifest("m", "1"); ok != (err == nil) {
				t.Errorf("%s, bad at %d: got %v and %s", compress, bad, err, published)
			} else if err == nil {
				if b, _ := there.Blob("m", d.Digest); !bytes.Equal(b, good) {
					t.Errorf("%s, bad at %d: other bytes were published", compress, bad)
				}
			}
		}
	}
}

// An image that refers to its artifact keeps that, in a copy.
func TestACopyKeepsItsSubject(t *testing.T) {
	here, there := registrytest.New(t, registrytest.Config{}), registrytest.New(t, registrytest.Config{})
	if _, err := fresh().PushSource(t.Context(), documented(), "m", here.Host+"/m:1", PushOptions{Mapping: convert.Options{ImageSubject: true, Image: true}}); err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{":1", ":1-image"} {
		if _, err := fresh().Push(t.Context(), here.Host+"/m"+tag, there.Host+"/m"+tag, PushOptions{LeaveImage: true}); err != nil {
			t.Fatal(err)
		}
		sameManifest(t, here.Host+"/m"+tag, there.Host+"/m"+tag)
	}
	lay := "oci:" + filepath.Join(t.TempDir(), "lay") + ":1"
	if _, err := fresh().Push(t.Context(), there.Host+"/m:1-image", lay, PushOptions{}); err != nil {
		t.Fatal(err)
	}
	sameManifest(t, here.Host+"/m:1-image", lay)
}

// Without the model hash among its annotations an image would be no carton's.
func TestAnImageNamesItsModel(t *testing.T) {
	s := storeTars(t, convert.Options{})
	delete(s.manifest.Annotations, convert.AnnotationModelHash)
	s.put()
	image, err := fresh().Image(t.Context(), s.Host+"/"+sourceRepo+":1", ImageOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, raw, _ := s.Manifest(sourceRepo, "1-image")
	if m, err := layout.ParseManifest(raw); err != nil || m.Annotations[convert.AnnotationModelHash] != image.ModelHash {
		t.Errorf("got %s, %v, want the model hash %s", raw, err, image.ModelHash)
	}
}
