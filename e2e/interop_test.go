package e2e

import (
	"archive/tar"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/program"
	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/registry/remote"
)

// The promise: whatever form a carton was pushed in, the programs that people
// copy artifacts with leave it as it is, and what they copied is the same model.

// forms are all that push makes, and the flags for each.
var forms = map[string][]string{
	"raw":       nil,
	"tar":       {"--layers", "tar"},
	"cncf":      {"--media-types", "cncf"},
	"draft":     {"--media-types", "cnai-draft"},
	"zstd":      {"--compress", "zstd", "--bundle-below", "1MiB"},
	"gzip":      {"--compress", "gzip", "--bundle-below", "1MiB"},
	"image":     {"--image"},
	"image-raw": {"--image", "--layers", "raw"},
	"image-zst": {"--image", "--compress", "zstd", "--bundle-below", "1MiB"},
}

// copier copies an artifact from one registry to another, and returns the image
// manifest that it sees at the source.
type copier func(t *testing.T, u *user, from, to string) string

// crane is the program of go-containerregistry.
var crane = program.Set{
	Name: "crane", Module: "github.com/google/go-containerregistry", Version: "v0.22.1",
	Packages: []string{"github.com/google/go-containerregistry/cmd/crane"},
}

func TestCopiedByOtherPrograms(t *testing.T) {
	copiers := map[string]copier{
		"skopeo":  copyWithSkopeo,
		"crane":   copyWithCrane,
		"oras-go": copyWithOras,
	}
	u := newUser(t)
	m := mixedModel()
	m.write(t, u.path("m.carton"))
	from, to := testregistry.Start(t, testregistry.Options{}), testregistry.Start(t, testregistry.Options{})
	digests := map[string]string{}
	for form, flags := range forms {
		tag := form
		digests[tag] = u.push(t, append([]string{"m.carton", from.Host + "/org/m:" + tag}, flags...)...).Digest
		if slices.Contains(flags, "--image") {
			digests[tag+"-image"] = strings.TrimSpace(u.must(t, "resolve", from.Host+"/org/m:"+tag+"-image", "-q").stdout)
		}
	}
	for name, copyWith := range copiers {
		t.Run(name, func(t *testing.T) {
			for tag, digest := range digests {
				t.Run(tag, func(t *testing.T) {
					copied := to.Host + "/" + name + "/m:" + tag
					if raw := copyWith(t, u, from.Host+"/org/m:"+tag, copied); "sha256:"+hexSum(raw) != digest {
						t.Errorf("sees another image manifest, want that with the digest %s:\n%s", digest, raw)
					}
					back := u.pull(t, copied, "-o", "back.carton", "--force")
					if back.Digest != digest || back.ModelHash != m.hash() {
						t.Errorf("got digest %s and model hash %s, want %s and %s", back.Digest, back.ModelHash, digest, m.hash())
					}
					z := readZip(t, u.path("back.carton"))
					same(t, &z.model, m)
				})
			}
		})
	}
}

// crane's own check of all that an image manifest names. Of an artifact it reads
// every byte. Of an image it reads the layers too, but gunzips them whatever
// their media type (v0.22.1, pkg/v1/validate/layer.go), so that the image form,
// whose layers are mostly not compressed, is asked for with --fast, and its
// content is compared as crane exports it.
func TestCraneFindsNothingWrong(t *testing.T) {
	u := newUser(t)
	m := mixedModel()
	m.write(t, u.path("m.carton"))
	s := testregistry.Start(t, testregistry.Options{})
	program := filepath.Join(crane.Build(t), "crane")
	for form, flags := range forms {
		t.Run(form, func(t *testing.T) {
			ref := s.Host + "/org/m:" + form
			u.push(t, append([]string{"m.carton", ref}, flags...)...)
			u.output(t, program, "validate", "--insecure", "--remote", ref)
			if !slices.Contains(flags, "--image") {
				return
			}
			u.output(t, program, "validate", "--fast", "--insecure", "--remote", ref+"-image")
			exported := readTar(t, u.output(t, program, "export", "--insecure", ref+"-image", "-"))
			if exported.files["MANIFEST"] != m.manifest() {
				t.Error("MANIFEST is not exported as it is")
			}
			delete(exported.files, "MANIFEST")
			if got := exported.symlinks["models"]; got != "model" {
				t.Errorf("the folder that KServe mounts is a symlink to %q, want model", got)
			}
			delete(exported.symlinks, "models")
			same(t, exported, m)
		})
	}
}

// readTar reads a tar of files, folders and symlinks.
func readTar(t *testing.T, content string) *model {
	t.Helper()
	m := &model{files: map[string]string{}, symlinks: map[string]string{}}
	for r := tar.NewReader(strings.NewReader(content)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return m
		}
		if err != nil {
			t.Fatal(err)
		}
		switch h.Typeflag {
		case tar.TypeReg:
			b, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			m.files[h.Name] = string(b)
		case tar.TypeSymlink:
			m.symlinks[h.Name] = h.Linkname
		case tar.TypeDir:
		default:
			t.Errorf("%s: got type %c, want a file, a folder or a symlink", h.Name, h.Typeflag)
		}
	}
}

// mixedModel has something of all that is stored in another way.
func mixedModel() *model {
	m := newModel(map[string]string{
		"model/weights.bin":      random("weights", 2<<20),
		"model/again.bin":        random("weights", 2<<20), // the same blob twice
		"model/infer.py":         "def get_model(): pass\n",
		"model/empty.txt":        "",
		"model/日本語/名前.txt":       "named in Japanese",
		"tensor_data/index.toml": "tensor = []\n",
		"misc/README.md":         "# A model\n",
	})
	m.symlinks["model/current.bin"] = "weights.bin"
	m.symlinks["model/main.py"] = "infer.py"
	return m
}

// output runs a program and returns what it prints.
func (u *user) output(t *testing.T, program string, args ...string) string {
	t.Helper()
	r := u.exec(t, program, args...)
	if r.code != 0 {
		t.Fatalf("%s %s: exit code %d\n%s", filepath.Base(program), strings.Join(args, " "), r.code, r.stderr)
	}
	return r.stdout
}

func copyWithSkopeo(t *testing.T, u *user, from, to string) string {
	t.Helper()
	return skopeoCopy(t, u, from, to, "--preserve-digests")
}

func skopeoCopy(t *testing.T, u *user, from, to string, flags ...string) string {
	t.Helper()
	skopeo := testenv.Program(t, "skopeo")
	args := append([]string{"--insecure-policy", "copy", "--src-tls-verify=false", "--dest-tls-verify=false"}, flags...)
	u.output(t, skopeo, append(args, "docker://"+from, "docker://"+to)...)
	return u.output(t, skopeo, "inspect", "--raw", "--tls-verify=false", "docker://"+from)
}

// skopeo compresses the layers of images that it copies, unless it is told not
// to; it leaves artifacts alone. The image is another one then, of the same model.
func TestSkopeoCompressesImages(t *testing.T) {
	u := newUser(t)
	m := mixedModel()
	m.write(t, u.path("m.carton"))
	s := testregistry.Start(t, testregistry.Options{})
	ref := s.Host + "/org/m:1"
	p := u.push(t, "m.carton", ref, "--image")
	for _, tag := range []string{"", "-image"} {
		skopeoCopy(t, u, ref+tag, s.Host+"/org/copied:1"+tag)
		back := u.pull(t, s.Host+"/org/copied:1"+tag, "-o", "back.carton", "--force")
		if back.ModelHash != m.hash() {
			t.Errorf("1%s: got model hash %s, want %s", tag, back.ModelHash, m.hash())
		}
		same := back.Digest == p.Digest || back.Digest == strings.TrimSpace(u.must(t, "resolve", "-q", ref+tag).stdout)
		if same != (tag == "") {
			t.Errorf("1%s: the same digest after a copy: %t; docs/kubernetes.md says that of the artifact alone", tag, same)
		}
	}
}

func copyWithCrane(t *testing.T, u *user, from, to string) string {
	t.Helper()
	program := filepath.Join(crane.Build(t), "crane")
	u.output(t, program, "copy", "--insecure", from, to)
	return u.output(t, program, "manifest", "--insecure", from)
}

func copyWithOras(t *testing.T, _ *user, from, to string) string {
	t.Helper()
	src, dst := orasRepository(t, from), orasRepository(t, to)
	if _, err := oras.Copy(t.Context(), src, src.Reference.Reference, dst, dst.Reference.Reference, oras.DefaultCopyOptions); err != nil {
		t.Fatal(err)
	}
	_, raw, err := oras.FetchBytes(t.Context(), src, src.Reference.Reference, oras.DefaultFetchBytesOptions)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// orasRepository is oras-go's client of the repository that ref names.
func orasRepository(t *testing.T, ref string) *remote.Repository {
	t.Helper()
	repo, err := remote.NewRepository(ref)
	if err != nil {
		t.Fatal(err)
	}
	repo.PlainHTTP = true
	return repo
}
