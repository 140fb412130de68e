package convert

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// extrasOf returns "NAME: CONTENT" of the extra layers of an artifact.
func extrasOf(t *testing.T, a *layout.Artifact) []string {
	t.Helper()
	var found []string
	for _, l := range a.Layers {
		if l.Annotations[AnnotationExtra] != "" {
			found = append(found, l.Name+": "+configOf(t, l))
		}
	}
	return found
}

func TestReadme(t *testing.T) {
	described := "spec_version = 1\nmodel_description = \"# From carton.toml\"\n" +
		"[runner]\nrunner_name = \"noop\"\nrequired_framework_version = \"*\"\nrunner_compat_version = 1\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"misc before model": {
			map[string]string{"misc/README.md": "misc", "model/README.md": "model", "model/LICENSE": "MIT"},
			[]string{"README.md: misc", "LICENSE: MIT"},
		},
		"the root before all": {
			map[string]string{"README.md": "root", "misc/README.md": "misc"}, []string{"README.md: root"},
		},
		"in any case":    {map[string]string{"model/ReadMe.MD": "x", "misc/license.txt": "y"}, []string{"README.md: x", "LICENSE: y"}},
		"deeper is none": {map[string]string{"model/sub/README.md": "x", "misc/LICENSE": "y"}, []string{"LICENSE: y"}},
		"empty is none":  {map[string]string{"misc/README.md": "", "model/README.md": "x"}, []string{"README.md: x"}},
		"the description": {
			map[string]string{"carton.toml": described, "misc/LICENSE.md": "y"},
			[]string{"README.md: # From carton.toml", "LICENSE: y"},
		},
		"a file before the description": {map[string]string{"carton.toml": described, "model/README": "x"}, []string{"README.md: x"}},
	} {
		files := map[string][]byte{"model/w.bin": []byte("w")}
		for p, text := range c.files {
			files[p] = []byte(text)
		}
		for _, form := range []Form{FormRaw, FormTar} {
			src := cartontest.New(files, nil)
			a, err := artifactOf(t.Context(), src, Options{Readme: true, Layers: form})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if diff := cmp.Diff(c.want, extrasOf(t, a)); diff != "" {
				t.Errorf("%s, %s: %s", name, form, diff)
			}
			s := newShelf()
			back := opened(t, s, s.put(t, a), OpenOptions{})
			sameSource(t, back, src)
			if got, want := len(back.imageManifest.Layers), len(a.Layers); got != want {
				t.Errorf("%s: the image manifest is shown with %d layers, want %d", name, got, want)
			}
		}
	}
}

// sameSource compares all members and MANIFEST.
func sameSource(t *testing.T, got, want carton.Source) {
	t.Helper()
	if got.Manifest().ModelHash() != want.Manifest().ModelHash() {
		t.Errorf("got the model hash %s, want %s", got.Manifest().ModelHash(), want.Manifest().ModelHash())
	}
	members, err := got.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		if content(t, got, m.Path) != content(t, want, m.Path) {
			t.Errorf("%s differs", m.Path)
		}
	}
}

// Extra layers are what a registry's page looks for, and say what they are.
func TestReadmeLayers(t *testing.T) {
	forms := formsOf(t, kinds(), Options{Readme: true, Image: true, MediaTypes: FamilyCNCF})
	last := manifestOf(t, forms.Artifact).Layers[len(forms.Artifact.Layers)-1]
	if last.MediaType != "application/vnd.cncf.model.doc.v1.raw" {
		t.Errorf("got the type %s", last.MediaType)
	}
	want := map[string]string{
		"org.cnai.model.filepath": "README.md", "org.cncf.model.filepath": "README.md", ocispec.AnnotationTitle: "README.md",
		"run.carton.extra":                  "true",
		"org.cncf.model.file.metadata+json": metadataOf("README.md", last.Size),
	}
	if diff := cmp.Diff(want, last.Annotations); diff != "" {
		t.Error(diff)
	}
	if got := forms.Paths[len(forms.Paths)-1]; !slices.Equal(got, []string{"README.md"}) {
		t.Errorf("it holds %q", got)
	}
	// A page shows the artifact. A pod that mounts the image sees the carton alone.
	without := formsOf(t, kinds(), Options{Image: true, MediaTypes: FamilyCNCF})
	if forms.Image.Digest != without.Image.Digest {
		t.Error("the image is another one")
	}
}

func TestReadmeThatCannotBe(t *testing.T) {
	none := cartontest.New(map[string][]byte{"model/w.bin": []byte("w")}, nil)
	if _, err := artifactOf(t.Context(), none, Options{Readme: true}); err == nil || !strings.Contains(err.Error(), "neither README nor LICENSE") {
		t.Errorf("got %v", err)
	}
	if _, err := artifactOf(t.Context(), kinds(), Options{Readme: true, MediaTypes: FamilyDraft}); err == nil || !strings.HasPrefix(err.Error(), "readme: cnai-draft") {
		t.Errorf("draft: got %v", err)
	}
	for size, kind := range map[int]error{maxExtraBytes: nil, maxExtraBytes + 1: carton.ErrLimit} {
		src := cartontest.New(map[string][]byte{"misc/README.md": bytes.Repeat([]byte("a"), size)}, nil)
		_, err := artifactOf(t.Context(), src, Options{Readme: true})
		if !errors.Is(err, kind) || kind != nil && !strings.HasPrefix(err.Error(), "misc/README.md: ") {
			t.Errorf("%d bytes: got %v, want %v", size, err, kind)
		}
	}
}

// The mark counts in artifacts of the mapping only: with others it would hide
// what their author stored.
func TestOnlyOurMarkHides(t *testing.T) {
	s, desc, a := pushed(t, kinds(), Options{Readme: true})
	m := manifestOf(t, a)
	delete(m.Annotations, AnnotationMapping)
	for i := range m.Layers { // lists count only with the mapping, too
		delete(m.Layers[i].Annotations, AnnotationMembers)
	}
	desc = s.keep(desc.MediaType, marshal(m))
	src, err := Open(t.Context(), s, desc, OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if _, err := src.Members(t.Context()); err != nil {
		t.Fatal(err)
	}
	if names := src.Unlisted(); len(names) != 1 || names[0] != "README.md" {
		t.Errorf("got %q, want README.md named", names)
	}
}

func TestCompat(t *testing.T) {
	for _, family := range []Family{FamilyCNAI, FamilyCNCF, FamilyDraft} {
		for _, form := range []Form{FormRaw, FormTar} {
			a, err := artifactOf(t.Context(), kinds(), Options{Compat: CompatImageConfig, MediaTypes: family, Layers: form})
			if err != nil {
				t.Fatal(err)
			}
			m := manifestOf(t, a)
			if m.ArtifactType != "" || m.Config.MediaType != ocispec.MediaTypeImageConfig || IsImage(m) {
				t.Errorf("%s: got the artifactType %q, the config %s and an image: %v", family, m.ArtifactType, m.Config.MediaType, IsImage(m))
			}
			if config := configOf(t, a.Config); !strings.HasPrefix(config, `{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":["sha256:`) {
				t.Errorf("%s: got the config %s", family, config)
			}
			plain, err := artifactOf(t.Context(), kinds(), Options{MediaTypes: family, Layers: form})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(manifestOf(t, plain).Layers, m.Layers); diff != "" {
				t.Errorf("%s: other layers: %s", family, diff)
			}
			s := newShelf()
			sameSource(t, opened(t, s, s.put(t, a), OpenOptions{}), kinds())
		}
	}
	if _, err := artifactOf(t.Context(), kinds(), Options{Compat: "docker"}); err == nil || !strings.HasPrefix(err.Error(), `compat: got "docker"`) {
		t.Errorf("got %v", err)
	}
}
