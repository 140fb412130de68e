package convert

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/hint"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// readAll opens an artifact and reads everything that a pull would.
func readAll(t testing.TB, f layout.Fetcher, desc ocispec.Descriptor, opts OpenOptions) error {
	t.Helper()
	src, err := Open(t.Context(), f, desc, opts)
	if err != nil {
		return err
	}
	defer src.Close()
	if _, err := carton.ReadInfo(t.Context(), src); err != nil {
		return err
	}
	members, err := src.Members(t.Context())
	if err != nil {
		return err
	}
	for _, m := range members {
		r, err := src.Open(t.Context(), m.Path)
		if err != nil {
			return err
		}
		n, err := io.Copy(io.Discard, r)
		if err != nil {
			_ = r.Close()
			return err
		}
		if n != m.Size {
			t.Errorf("%s: got %d bytes, Members says %d", m.Path, n, m.Size)
		}
		if err := r.Close(); err != nil {
			return err
		}
	}
	return nil
}

// changed is our own artifact with something changed in its image manifest.
func changed(t testing.TB, opts Options, change func(s *shelf, m *ocispec.Manifest)) (*shelf, ocispec.Descriptor) {
	t.Helper()
	s, _, a := pushed(t, kinds(), opts)
	var m ocispec.Manifest
	if err := json.Unmarshal(a.Manifest, &m); err != nil {
		t.Fatal(err)
	}
	change(s, &m)
	desc := s.keep(ocispec.MediaTypeImageManifest, marshal(m))
	return s, desc
}

// layerOf returns the layer with this title.
func layerOf(m *ocispec.Manifest, title string) *ocispec.Descriptor {
	for i := range m.Layers {
		if m.Layers[i].Annotations[ocispec.AnnotationTitle] == title {
			return &m.Layers[i]
		}
	}
	panic("no layer " + title)
}

func rename(d *ocispec.Descriptor, name string) {
	for k := range namedAs("") {
		d.Annotations[k] = name
	}
}

func TestChangedArtifacts(t *testing.T) {
	bundled := Options{BundleBelow: 100}
	for name, c := range map[string]struct {
		opts   Options
		change func(s *shelf, m *ocispec.Manifest)
		kind   error
		text   string
	}{
		"another artifactType": {
			change: func(_ *shelf, m *ocispec.Manifest) { m.ArtifactType = "application/x" },
			kind:   layout.ErrFormat, text: `artifactType is "application/x"`,
		},
		"a container image": {
			change: func(_ *shelf, m *ocispec.Manifest) {
				m.ArtifactType, m.Config.MediaType = "", ocispec.MediaTypeImageConfig
			},
			kind: layout.ErrFormat, text: "a container image",
		},
		"a Helm chart": {
			change: func(_ *shelf, m *ocispec.Manifest) {
				m.ArtifactType, m.Config.MediaType = "", "application/vnd.cncf.helm.config.v1+json"
			},
			kind: layout.ErrFormat, text: "a Helm chart",
		},
		"a config that contradicts": {
			change: func(_ *shelf, m *ocispec.Manifest) { m.Config.MediaType = ocispec.MediaTypeImageConfig },
			kind:   layout.ErrFormat, text: "a container image",
		},
		"an unknown config": {
			change: func(_ *shelf, m *ocispec.Manifest) { m.Config.MediaType = "application/y\n" },
			kind:   layout.ErrFormat, text: `media type "application/y\n"`,
		},
		"the empty config": {
			change: func(_ *shelf, m *ocispec.Manifest) { m.Config.MediaType = ocispec.MediaTypeEmptyJSON },
		},
		"another mapping": {
			change: func(_ *shelf, m *ocispec.Manifest) { m.Annotations[AnnotationMapping] = "2" },
			kind:   carton.ErrVersion, text: `mapping "2", want 1`,
		},
		"no mapping": {
			change: func(_ *shelf, m *ocispec.Manifest) { delete(m.Annotations, AnnotationMapping) },
		},
		"another model hash": {
			change: func(_ *shelf, m *ocispec.Manifest) { m.Annotations[AnnotationModelHash] = "ff" },
			kind:   carton.ErrChecksum, text: "model hash",
		},
		"no layers": {
			change: func(_ *shelf, m *ocispec.Manifest) { m.Layers = []ocispec.Descriptor{} },
			kind:   layout.ErrFormat, text: "no layers",
		},
		"a layer of an unknown type": {
			change: func(_ *shelf, m *ocispec.Manifest) { m.Layers[5].MediaType = "application/z" },
			kind:   layout.ErrFormat, text: `unknown type "application/z"`,
		},
		"no name": {
			change: func(_ *shelf, m *ocispec.Manifest) { m.Layers[5].Annotations = nil },
			kind:   layout.ErrFormat, text: "layer 6: layer: has no name",
		},
		"filepath keys that differ": {
			change: func(_ *shelf, m *ocispec.Manifest) {
				layerOf(m, "model/main.py").Annotations[filepathCNCF] = "model/other.py"
			},
			kind: carton.ErrFormat, text: "model/main.py: org.cnai.model.filepath and org.cncf.model.filepath differ",
		},
		"a title that differs": {
			change: func(_ *shelf, m *ocispec.Manifest) {
				layerOf(m, "model/main.py").Annotations[ocispec.AnnotationTitle] = "main.py"
			},
			kind: carton.ErrFormat, text: "title differs",
		},
		"a path that escapes": {
			change: func(_ *shelf, m *ocispec.Manifest) { rename(layerOf(m, "model/main.py"), "../main.py") },
			kind:   carton.ErrInsecurePath, text: "../main.py",
		},
		"an absolute path": {
			change: func(_ *shelf, m *ocispec.Manifest) { rename(layerOf(m, "model/main.py"), "/etc/passwd") },
			kind:   carton.ErrInsecurePath, text: "absolute",
		},
		"a path with a newline": {
			change: func(_ *shelf, m *ocispec.Manifest) { rename(layerOf(m, "model/main.py"), "model/a\nb") },
			kind:   carton.ErrInsecurePath, text: `"model/a\nb"`,
		},
		"a member that is not listed": {
			change: func(_ *shelf, m *ocispec.Manifest) { rename(layerOf(m, "model/main.py"), "model/other.py") },
			kind:   carton.ErrFormat, text: "model/other.py: is in the artifact, but is not listed",
		},
		"LINKS": {
			change: func(_ *shelf, m *ocispec.Manifest) { rename(layerOf(m, "model/main.py"), "LINKS") },
			kind:   carton.ErrFormat, text: "LINKS: is in the artifact, but is not listed",
		},
		"a member twice": {
			change: func(_ *shelf, m *ocispec.Manifest) { m.Layers = append(m.Layers, *layerOf(m, "model/main.py")) },
			kind:   carton.ErrInsecurePath, text: "model/main.py: is in the artifact twice",
		},
		"MANIFEST twice": {
			change: func(_ *shelf, m *ocispec.Manifest) { m.Layers = append(m.Layers, m.Layers[0]) },
			kind:   carton.ErrInsecurePath, text: "MANIFEST: is in the artifact twice",
		},
		"a member too few": {
			change: func(_ *shelf, m *ocispec.Manifest) { m.Layers = m.Layers[:len(m.Layers)-1] },
			kind:   carton.ErrFormat, text: "tensor_data/index.toml: is listed in MANIFEST, but no layer",
		},
		"no MANIFEST, and tars that list its lines": {
			change: func(_ *shelf, m *ocispec.Manifest) { m.Layers = m.Layers[1:] },
			kind:   layout.ErrFormat, text: "has no MANIFEST",
		},
		"another member's content": {
			change: func(_ *shelf, m *ocispec.Manifest) {
				layerOf(m, "model/main.py").Digest = layerOf(m, "model/config.json").Digest
				layerOf(m, "model/main.py").Size = layerOf(m, "model/config.json").Size
			},
			kind: carton.ErrChecksum, text: "model/main.py: its layer is sha256:",
		},
		"MANIFEST is a symlink": {
			change: func(_ *shelf, m *ocispec.Manifest) { m.Layers[0].Annotations[AnnotationSymlink] = "x" },
			kind:   layout.ErrFormat,
		},
		"a symlink that escapes": {
			change: func(_ *shelf, m *ocispec.Manifest) {
				layerOf(m, "model/link.json").Annotations[AnnotationSymlink] = "../../config.json"
			},
			kind: carton.ErrInsecurePath, text: "model/link.json",
		},
		"an absolute symlink": {
			change: func(_ *shelf, m *ocispec.Manifest) {
				layerOf(m, "model/link.json").Annotations[AnnotationSymlink] = "/model/config.json"
			},
			kind: carton.ErrInsecurePath, text: "model/link.json",
		},
		"a symlink out of model": {
			change: func(_ *shelf, m *ocispec.Manifest) {
				layerOf(m, "model/link.json").Annotations[AnnotationSymlink] = "../carton.toml"
			},
			kind: carton.ErrInsecurePath, text: "model/link.json",
		},
		"a symlink to other content": {
			change: func(_ *shelf, m *ocispec.Manifest) {
				layerOf(m, "model/link.json").Annotations[AnnotationSymlink] = "main.py"
			},
			kind: carton.ErrChecksum, text: "model/",
		},
		"a symlink to nothing": {
			change: func(_ *shelf, m *ocispec.Manifest) {
				layerOf(m, "model/link.json").Annotations[AnnotationSymlink] = "none"
			},
			kind: carton.ErrFormat, text: "model/",
		},
		"a symlink to a folder": {
			change: func(_ *shelf, m *ocispec.Manifest) {
				layerOf(m, "model/link.json").Annotations[AnnotationSymlink] = "snapshots"
			},
			kind: carton.ErrFormat, text: "folder",
		},
		"a symlink to itself": {
			change: func(_ *shelf, m *ocispec.Manifest) {
				layerOf(m, "model/link.json").Annotations[AnnotationSymlink] = "chain.json"
			},
			kind: carton.ErrInsecurePath,
		},
		"an empty symlink": {
			change: func(_ *shelf, m *ocispec.Manifest) {
				layerOf(m, "model/link.json").Annotations[AnnotationSymlink] = ""
			},
			kind: carton.ErrFormat, text: "run.carton.symlink is empty",
		},
		"a symlink outside of model": {
			change: func(_ *shelf, m *ocispec.Manifest) {
				layerOf(m, "misc/image.png").Annotations[AnnotationSymlink] = "../model/config.json"
			},
			kind: carton.ErrInsecurePath, text: "misc/image.png",
		},
		"a list that is none": {
			opts: bundled, change: func(_ *shelf, m *ocispec.Manifest) {
				layerOf(m, ".bundles/doc-1.tar").Annotations[AnnotationMembers] = "1:2:3"
			},
			kind: layout.ErrFormat, text: "run.carton.members",
		},
		"a line too high": {
			opts: bundled, change: func(_ *shelf, m *ocispec.Manifest) {
				layerOf(m, ".bundles/doc-1.tar").Annotations[AnnotationMembers] = "77:3"
			},
			kind: layout.ErrFormat, text: "line 77 of a MANIFEST with 20 lines",
		},
		"lines out of order": {
			opts: bundled, change: func(_ *shelf, m *ocispec.Manifest) {
				layerOf(m, ".bundles/doc-1.tar").Annotations[AnnotationMembers] = "3:8,2:18"
			},
			kind: layout.ErrFormat, text: "not in the order of the tar",
		},
		"MANIFEST in a list of more": {
			opts: bundled, change: func(_ *shelf, m *ocispec.Manifest) {
				layerOf(m, ".bundles/doc-1.tar").Annotations[AnnotationMembers] = "0:5,2:18"
			},
			kind: layout.ErrFormat,
		},
		"a size that makes another tar": {
			opts: bundled, change: func(_ *shelf, m *ocispec.Manifest) {
				d := layerOf(m, ".bundles/dataset-1.tar")
				d.Annotations[AnnotationMembers] = "20:5000"
			},
			kind: layout.ErrFormat, text: "make a tar of",
		},
		"a size that makes as long a tar": {
			opts: bundled, change: func(_ *shelf, m *ocispec.Manifest) {
				layerOf(m, ".bundles/dataset-1.tar").Annotations[AnnotationMembers] = "20:11"
			},
			kind: layout.ErrFormat, text: "not what its annotation run.carton.members says",
		},
		"a size that overflows": {
			opts: bundled, change: func(_ *shelf, m *ocispec.Manifest) {
				layerOf(m, ".bundles/dataset-1.tar").Annotations[AnnotationMembers] = "20:9223372036854775807"
			},
			kind: layout.ErrFormat, text: "too large",
		},
		"another member of that size": {
			opts: bundled, change: func(_ *shelf, m *ocispec.Manifest) {
				layerOf(m, ".bundles/dataset-1.tar").Annotations[AnnotationMembers] = "3:12"
				delete(layerOf(m, ".bundles/doc-1.tar").Annotations, AnnotationMembers)
			},
			kind: carton.ErrInsecurePath, text: "misc/image.png: is in the artifact twice",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, desc := changed(t, c.opts, c.change)
			err := readAll(t, s, desc, OpenOptions{})
			if !errors.Is(err, c.kind) || (err != nil && !strings.Contains(err.Error(), c.text)) {
				t.Errorf("got %v, want %v: %s", err, c.kind, c.text)
			}
			if err != nil && strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("more than a line: %q", err)
			}
			if s.open != 0 {
				t.Errorf("%d bodies are open", s.open)
			}
		})
	}
}

func TestWhatIsNoImageManifest(t *testing.T) {
	s := newShelf()
	for name, c := range map[string]struct {
		desc ocispec.Descriptor
		kind error
		hint string
	}{
		"an index": {
			desc: s.keep(ocispec.MediaTypeImageIndex, []byte(`{"schemaVersion":2,"mediaType":"`+ocispec.MediaTypeImageIndex+`","manifests":[]}`)),
			kind: layout.ErrFormat, hint: "digest",
		},
		"an index that comes as an image manifest": {
			desc: s.keep(ocispec.MediaTypeImageManifest, []byte(`{"schemaVersion":2,"manifests":[]} `)),
			kind: layout.ErrFormat, hint: "digest",
		},
		"no JSON":      {desc: s.keep(ocispec.MediaTypeImageManifest, []byte("<html>")), kind: layout.ErrFormat},
		"a large one":  {desc: ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromString("x"), Size: 512 << 20}, kind: layout.ErrLimit},
		"not there":    {desc: ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromString("x"), Size: 5}, kind: layout.ErrNotFound},
		"another type": {desc: s.keep("text/html", []byte(`{"schemaVersion":2,"config":{},"layers":[]}`)), kind: layout.ErrFormat},
	} {
		err := readAll(t, s, c.desc, OpenOptions{})
		if !errors.Is(err, c.kind) {
			t.Errorf("%s: got %v, want %v", name, err, c.kind)
		}
		if got := strings.Join(hint.Of(err), " "); !strings.Contains(got, c.hint) {
			t.Errorf("%s: got the hints %q, want one about the %s", name, got, c.hint)
		}
	}
	desc := s.keep(ocispec.MediaTypeImageManifest, []byte("{}"))
	s.blobs[desc.Digest] = []byte("{ }")
	if err := readAll(t, s, desc, OpenOptions{}); !errors.Is(err, layout.ErrDigest) {
		t.Errorf("other bytes: got %v, want ErrDigest", err)
	}
}

// oneEntry is a tar with one entry of any kind.
func oneEntry(h tar.Header, data string) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	h.Size, h.Mode = int64(len(data)), 0o644
	if err := errors.Join(w.WriteHeader(&h), func() error { _, err := io.WriteString(w, data); return err }(), w.Close()); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func TestForeignArtifactsThatAreRefused(t *testing.T) {
	file := func(name string) []byte { return oneEntry(tar.Header{Name: name, Typeflag: tar.TypeReg}, "x") }
	info := rawFile("carton.toml", cartontest.Info)
	x := cartontest.Bytes("x").Hash()
	toml := "carton.toml=" + cartontest.Bytes(cartontest.Info).Hash() + "\n"
	for name, c := range map[string]struct {
		layers []foreignLayer
		kind   error
	}{
		"a hard link": {
			[]foreignLayer{info, tarLayer(".tar", oneEntry(tar.Header{Name: "model/a", Typeflag: tar.TypeLink, Linkname: "carton.toml"}, ""))},
			layout.ErrFormat,
		},
		"a device": {
			[]foreignLayer{info, tarLayer(".tar", oneEntry(tar.Header{Name: "model/a", Typeflag: tar.TypeBlock}, ""))},
			layout.ErrFormat,
		},
		"a FIFO": {
			[]foreignLayer{info, tarLayer(".tar", oneEntry(tar.Header{Name: "model/a", Typeflag: tar.TypeFifo}, ""))},
			layout.ErrFormat,
		},
		"a tar name that escapes":      {[]foreignLayer{info, tarLayer(".tar", file("../../x"))}, carton.ErrInsecurePath},
		"an absolute tar name":         {[]foreignLayer{info, tarLayer(".tar", file("/x"))}, carton.ErrInsecurePath},
		"a tar name with a backslash":  {[]foreignLayer{info, tarLayer(".tar", file(`a\b`))}, carton.ErrInsecurePath},
		"a folder's name that escapes": {[]foreignLayer{info, tarLayer(".tar", oneEntry(tar.Header{Name: "../d/", Typeflag: tar.TypeDir}, ""))}, carton.ErrInsecurePath},
		"a symlink that escapes": {
			[]foreignLayer{info, tarLayer(".tar", oneEntry(tar.Header{Name: "model/a", Typeflag: tar.TypeSymlink, Linkname: "../../etc/passwd"}, ""))},
			carton.ErrFormat,
		},
		"a symlink outside of model": {
			[]foreignLayer{info, tarLayer(".tar", oneEntry(tar.Header{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "carton.toml"}, ""))},
			carton.ErrInsecurePath,
		},
		"a symlink to itself": {
			[]foreignLayer{info, tarLayer(".tar", oneEntry(tar.Header{Name: "model/a", Typeflag: tar.TypeSymlink, Linkname: "a"}, ""))},
			carton.ErrFormat,
		},
		"data behind the end":  {[]foreignLayer{info, tarLayer(".tar", append(file("model/a"), 1))}, layout.ErrFormat},
		"no end":               {[]foreignLayer{info, tarLayer(".tar", file("model/a")[:1024])}, layout.ErrFormat},
		"two frames":           {[]foreignLayer{info, tarLayer(".tar+zstd", append(zstdOf(file("model/a")), zstdOf(file("model/b"))...))}, layout.ErrFormat},
		"no zstd":              {[]foreignLayer{info, tarLayer(".tar+zstd", file("model/a"))}, layout.ErrFormat},
		"no gzip":              {[]foreignLayer{info, tarLayer(".tar+gzip", file("model/a"))}, layout.ErrFormat},
		"an empty tar layer":   {[]foreignLayer{info, tarLayer(".tar", nil)}, layout.ErrFormat},
		"names that are one":   {[]foreignLayer{info, rawFile("model/A", "x"), rawFile("model/a", "x")}, carton.ErrInsecurePath},
		"a name twice":         {[]foreignLayer{info, rawFile("model/a", "x"), tarLayer(".tar", file("model/a"))}, carton.ErrInsecurePath},
		"a file and a folder":  {[]foreignLayer{info, rawFile("model/a", "x"), rawFile("model/a/b", "x")}, carton.ErrInsecurePath},
		"LINKS":                {[]foreignLayer{info, rawFile("LINKS", "version = 1")}, carton.ErrFormat},
		"a broken carton.toml": {[]foreignLayer{rawFile("carton.toml", "spec_version = 1"), rawFile("model/a", "x")}, carton.ErrFormat},
		"MANIFEST without carton.toml": {
			[]foreignLayer{rawFile("MANIFEST", "model/a="+x+"\n"), rawFile("model/a", "x")}, carton.ErrFormat,
		},
		"MANIFEST that lists carton.toml, which is not there": {
			[]foreignLayer{rawFile("MANIFEST", "model/a="+x+"\n"+toml), rawFile("model/a", "x")}, carton.ErrFormat,
		},
		"a broken MANIFEST": {[]foreignLayer{info, rawFile("MANIFEST", "model/a\n"), rawFile("model/a", "x")}, carton.ErrFormat},
		"an empty MANIFEST": {[]foreignLayer{info, rawFile("MANIFEST", ""), rawFile("model/a", "x")}, carton.ErrFormat},
		"an empty MANIFEST in a tar": {
			[]foreignLayer{info, tarLayer(".tar", oneEntry(tar.Header{Name: "MANIFEST", Typeflag: tar.TypeReg}, ""))}, carton.ErrFormat,
		},
		"MANIFEST in two tars": {
			[]foreignLayer{
				info, tarLayer(".tar", oneEntry(tar.Header{Name: "MANIFEST", Typeflag: tar.TypeReg}, toml)),
				tarLayer(".tar", oneEntry(tar.Header{Name: "MANIFEST", Typeflag: tar.TypeReg}, toml)),
			}, carton.ErrInsecurePath,
		},
		"wrong content in a tar": {
			[]foreignLayer{info, rawFile("MANIFEST", toml+"model/a="+cartontest.Bytes("y").Hash()+"\n"), tarLayer(".tar", file("model/a"))},
			carton.ErrChecksum,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, desc := cnaiModel(c.layers...).put(t)
			if err := readAll(t, s, desc, OpenOptions{}); !errors.Is(err, c.kind) {
				t.Errorf("got %v, want %v", err, c.kind)
			}
			if s.open != 0 {
				t.Errorf("%d bodies are open", s.open)
			}
		})
	}
}

// FuzzOpen gives Open any image manifest, over the blobs of artifacts of ours and
// of others. Whatever it opens keeps a source's promises.
func FuzzOpen(f *testing.F) {
	s := newShelf()
	for _, opts := range []Options{{}, {BundleBelow: 100, Compress: CompressZstd}, {MediaTypes: FamilyDraft}} {
		own, desc, _ := pushed(f, kinds(), opts)
		for dgst, b := range own.blobs {
			s.blobs[dgst] = b
		}
		f.Add(own.blobs[desc.Digest])
	}
	other, desc := modctlModel().put(f)
	for dgst, b := range other.blobs {
		s.blobs[dgst] = b
	}
	f.Add(other.blobs[desc.Digest])
	f.Fuzz(func(t *testing.T, manifest []byte) {
		mine := &shelf{blobs: map[digest.Digest][]byte{}}
		for dgst, b := range s.blobs {
			mine.blobs[dgst] = b
		}
		desc := mine.keep(ocispec.MediaTypeImageManifest, manifest)
		_ = readAll(t, mine, desc, OpenOptions{Wrap: &Wrap{RunnerName: "r", FrameworkVersion: "*"}})
		if mine.open != 0 {
			t.Errorf("%d bodies are open", mine.open)
		}
	})
}
