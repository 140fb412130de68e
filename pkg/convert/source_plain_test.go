package convert

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
)

// dockerModel is what Docker Model Runner pushes in ModelPack's format: weights
// called by their format, with or without a name.
func dockerModel() foreign {
	return foreign{
		artifactType: "application/vnd.cncf.model.manifest.v1+json",
		configType:   "application/vnd.cncf.model.config.v1+json",
		config:       `{"descriptor":{"name":"tiny"},"config":{"format":"gguf","paramSize":"1B"},"modelfs":{"type":"layers","diffIds":[]}}`,
		layers: []foreignLayer{
			typedLayer("application/vnd.cncf.model.weight.v1.gguf"),
			{mediaType: "application/vnd.cncf.model.doc.v1.raw", annotations: map[string]string{filepathCNCF: "LICENSE"}, data: []byte("MIT")},
		},
	}
}

// TestModelsWithoutACartonAreReadAsTheyAre: every member under its own name, read
// and verified, whatever its layer; and nothing invented beside them.
func TestModelsWithoutACartonAreReadAsTheyAre(t *testing.T) {
	for name, c := range map[string]struct {
		artifact foreign
		want     map[string]string
	}{
		"modctl": {modctlModel(), map[string]string{
			"model-00001-of-00002.safetensors": "weights 1", "model-00002-of-00002.safetensors": "weights 2",
			"sub/copy.safetensors": "weights 1", "config.json": "{}", "tokenizer.json": "[]", "latest.json": "[]", "z.py": "z", "a.py": "a",
		}},
		"Docker Model Runner": {dockerModel(), map[string]string{
			"model.gguf": "application/vnd.cncf.model.weight.v1.gguf", "LICENSE": "MIT",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			src, err := c.artifact.open(t, OpenOptions{Plain: true})
			if err != nil {
				t.Fatal(err)
			}
			if !src.Plain() {
				t.Error("does not say that it is no carton")
			}
			members, err := src.Members(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, m := range members {
				got[m.Path] = content(t, src, m.Path)
				if m.Size != int64(len(got[m.Path])) {
					t.Errorf("%s: got the size %d, want %d", m.Path, m.Size, len(got[m.Path]))
				}
				if src.Hashed(m.Path) && m.Hash != digest.FromString(got[m.Path]).Encoded() {
					t.Errorf("%s: got the hash %s", m.Path, m.Hash)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if err := src.VerifyLayers(t.Context(), nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDamagedModelsWithoutACarton: exit 0 of cat says that the bytes are right,
// also where no MANIFEST has a hash of them.
func TestDamagedModelsWithoutACarton(t *testing.T) {
	f := modctlModel()
	shelf, desc := f.put(t)
	src, err := Open(t.Context(), shelf, desc, OpenOptions{Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if _, err := src.Members(t.Context()); err != nil {
		t.Fatal(err)
	}
	tarBlob := src.imageManifest.Layers[3].Digest // of config.json, tokenizer.json
	shelf.blobs[tarBlob] = bytes.Replace(shelf.blobs[tarBlob], []byte("[]"), []byte("{}"), 1)
	r, err := src.Open(t.Context(), "config.json") // not the file that was changed
	if err == nil {
		_, err = io.Copy(io.Discard, r)
		r.Close()
	}
	if !errors.Is(err, layout.ErrDigest) {
		t.Errorf("cat: got %v, want that the layer is not what it was", err)
	}
	if err := src.VerifyLayers(t.Context(), nil); !errors.Is(err, layout.ErrDigest) {
		t.Errorf("verify: got %v", err)
	}
	if _, err := src.Open(t.Context(), "none"); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("got %v", err)
	}
}

// What is a carton stays one, and needs MANIFEST or carton.toml as before.
func TestPlainIsForWhatIsNoCarton(t *testing.T) {
	src, err := cnaiModel(rawFile(carton.InfoName, fullInfo), rawFile("model/w.bin", "w")).open(t, OpenOptions{Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	if src.Plain() || !src.Regenerated() {
		t.Error("a carton was opened as a model without one")
	}
	_, err = modctlModel().open(t, OpenOptions{})
	if !errors.Is(err, ErrNoCarton) || len(hint.Of(err)) != 1 {
		t.Errorf("got %v %q", err, hint.Of(err))
	}
}
