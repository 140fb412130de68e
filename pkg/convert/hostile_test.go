package convert

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

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
			kind:   ErrNoCarton, text: `artifactType is "application/x"`,
		},
		"a container image": {
			change: func(_ *shelf, m *ocispec.Manifest) {
				m.ArtifactType, m.Config.MediaType = "", ocispec.MediaTypeImageConfig
				delete(m.Annotations, AnnotationModelHash)
			},
			kind: ErrNoCarton, text: "a container image",
		},
		"a Helm chart": {
			change: func(_ *shelf, m *ocispec.Manifest) {
				m.ArtifactType, m.Config.MediaType = "", "application/vnd.cncf.helm.config.v1+json"
			},
			kind: ErrNoCarton, text: "a Helm chart",
		},
		"a config that contradicts": {
			change: func(_ *shelf, m *ocispec.Manifest) { m.Config.MediaType = ocispec.MediaTypeImageConfig },
			kind:   layout.ErrFormat, text: `media type "application/vnd.oci.image.config.v1+json"`,
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
		"Docker's image manifest": {
			change: func(_ *shelf, m *ocispec.Manifest) {
				m.MediaType = "application/vnd.docker.distribution.manifest.v2+json"
			},
			kind: layout.ErrFormat, text: "says that its type is application/vnd.docker",
		},
		"no media type": {
			change: func(_ *shelf, m *ocispec.Manifest) { m.MediaType = "" },
		},
		"a path that turns text around": {
			change: func(_ *shelf, m *ocispec.Manifest) { rename(layerOf(m, "model/main.py"), "model/\u202eyp.niam") },
			kind:   carton.ErrFormat, text: "is listed in MANIFEST, but no layer",
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
			kind:   layout.ErrFormat, text: "without layers",
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
			kind:   carton.ErrFormat, text: "is listed in MANIFEST, but no layer",
		},
		"LINKS": {
			change: func(_ *shelf, m *ocispec.Manifest) { rename(layerOf(m, "model/main.py"), "LINKS") },
			kind:   carton.ErrFormat, text: "is listed in MANIFEST, but no layer",
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
			kind:   layout.ErrFormat, text: "has no MANIFEST, which every",
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
