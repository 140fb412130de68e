package e2e

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/file"
	"oras.land/oras-go/v2/registry/remote"
)

// The promise: of a repository of a hub, with every awkward name that there is,
// weights are weights, and other programs find the model. oras is the real library;
// the rules of modctl and Docker Model Runner are played.

// besideWeights are the files that repositories have beside their weights.
var besideWeights = []string{
	".gitattributes", ".gitignore", "LICENSE", "USE_POLICY.md", "README.md", "Modelfile", "chat_template.jinja", "config.json",
	"generation_config.json", "merges", "merges.txt", "params", "spiece.model", "template", "tokenizer", "tokenizer.json",
	"tokenizer.model.v3", "training_args.bin", "vocab", "vocab.json", "original/params.json", "zoneinfo/Europe/Berlin", "figures/a.png",
	"model.safetensors.index.json",
}

func TestProgramsFindTheModelOfAHubsRepository(t *testing.T) {
	s := testregistry.Start(t, testregistry.Options{})
	tensors := func(seed string) string {
		return safetensors(seed, tensorEntry{name: "t", dtype: "F32", shape: []int{2}})
	}
	for format, weights := range map[string]map[string]string{
		"gguf": {"model-q4_k_m.gguf": "GGUF and more"},
		"safetensors": {
			"model-00001-of-00002.safetensors": tensors("1"), "model-00002-of-00002.safetensors": tensors("2"), "consolidated.safetensors": tensors("3"),
		},
	} {
		t.Run(format, func(t *testing.T) {
			m := newModel(nil)
			for _, name := range besideWeights {
				m.files["model/"+name] = "{}"
			}
			var want []string
			for name, text := range weights {
				m.files["model/"+name] = text
				want = append(want, "model/"+name)
			}
			slices.Sort(want)
			u := newUser(t)
			m.write(t, u.path("m.carton"))
			for _, family := range []string{"cnai", "cncf"} {
				ref := s.Host + "/org/" + format + ":" + family
				u.push(t, "m.carton", ref, "--media-types", family)
				a := fetched(t, s, "org/"+format, family)
				if got := a.weights(family); !slices.Equal(got, want) {
					t.Errorf("%s: the weights are %q, want %q", family, got, want)
				}
				compare(t, "modctl's file", a.modctl(t), withManifest(m))
				compare(t, "oras's file", orasPull(t, ref), withManifest(m))
				gotFormat, gotPaths := a.modelRunner()
				if family == "cnai" && gotPaths != nil {
					t.Errorf("Docker Model Runner reads cnai: got %q", gotPaths)
				}
				if family == "cncf" && (gotFormat != format || !slices.Equal(gotPaths, want)) {
					t.Errorf("Docker Model Runner: got %q of format %q, want %q of %q", gotPaths, gotFormat, want, format)
				}
			}
		})
	}
}

func withManifest(m *model) map[string]string {
	files := maps.Clone(m.files)
	files["MANIFEST"] = m.manifest()
	return files
}

// stored is an artifact with what programs need of it.
type stored struct {
	ocispec.Manifest
	blob func(ocispec.Descriptor) []byte
}

func fetched(t *testing.T, s *testregistry.Server, repo, tag string) *stored {
	t.Helper()
	r, err := remote.NewRepository(s.Host + "/" + repo)
	if err != nil {
		t.Fatal(err)
	}
	r.PlainHTTP = true
	desc, raw, err := oras.FetchBytes(t.Context(), r, tag, oras.FetchBytesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a := &stored{blob: func(d ocispec.Descriptor) []byte { return s.Blob(t, d.Digest.String()) }}
	if err := json.Unmarshal(raw, &a.Manifest); err != nil {
		t.Fatalf("%s: %v", desc.Digest, err)
	}
	return a
}

// weights returns the names of raw weights in their order, as a program that takes
// the first sees them.
func (a *stored) weights(family string) []string {
	var names []string
	for _, l := range a.Layers {
		if l.MediaType == "application/vnd."+family+".model.weight.v1.raw" {
			names = append(names, l.Annotations["org."+family+".model.filepath"])
		}
	}
	return names
}

// modctl is what modctl pull --extract makes: a raw layer is the file that either
// filepath names, a plain tar is unpacked, any other type is an error.
// https://github.com/modelpack/modctl, pkg/backend and pkg/codec, 2026
func (a *stored) modctl(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, l := range a.Layers {
		switch {
		case strings.HasSuffix(l.MediaType, ".v1.raw"):
			name := l.Annotations["org.cncf.model.filepath"]
			if name == "" {
				name = l.Annotations["org.cnai.model.filepath"]
			}
			files[name] = string(a.blob(l))
		case strings.HasSuffix(l.MediaType, ".v1.tar"):
			untar(t, a.blob(l), files)
		default:
			t.Errorf("modctl fails on a layer of type %s", l.MediaType)
		}
	}
	return files
}

func untar(t *testing.T, blob []byte, files map[string]string) {
	t.Helper()
	for r := tar.NewReader(strings.NewReader(string(blob))); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			b, _ := io.ReadAll(r)
			files[path.Clean(h.Name)] = string(b)
		}
	}
}

// modelRunner is what Docker Model Runner takes for the model: of the cncf family
// alone, all raw weights in their order, each as a file of the config's format.
// https://github.com/docker/model-runner, pkg/distribution/internal/{partial,bundle}, 2026
func (a *stored) modelRunner() (format string, paths []string) {
	if a.Config.MediaType != "application/vnd.cncf.model.config.v1+json" {
		return "", nil
	}
	var config struct {
		Config struct{ Format string }
	}
	if json.Unmarshal(a.blob(a.Config), &config) != nil {
		return "", nil
	}
	return config.Config.Format, a.weights("cncf")
}

// orasPull is what the real library writes into a folder, with what is in tars
// below .bundles unpacked beside it.
func orasPull(t *testing.T, ref string) map[string]string {
	t.Helper()
	name, tag, _ := strings.Cut(ref[strings.LastIndex(ref, "/"):], ":")
	r, err := remote.NewRepository(ref[:strings.LastIndex(ref, "/")] + name)
	if err != nil {
		t.Fatal(err)
	}
	r.PlainHTTP = true
	dir := t.TempDir()
	store, err := file.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := oras.Copy(t.Context(), r, tag, store, tag, oras.DefaultCopyOptions); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	err = filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		at, _ := filepath.Rel(dir, name)
		if at = filepath.ToSlash(at); strings.HasPrefix(at, ".bundles/") {
			untar(t, b, files)
		} else {
			files[at] = string(b)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
