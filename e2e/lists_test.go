package e2e

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cuelabs.dev/go/oci/ociregistry/ocimem"
	"cuelabs.dev/go/oci/ociregistry/ociserver"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
)

// The promise: what is beside a model in a registry (tags, documents, signatures) is set,
// listed and deleted alike, whoever wrote the registry, and others see the same.

// kept are the registries that lists are tried with: distribution, which keeps no lists of
// referrers, as it is configured and as it is not; and cuelabs', which keeps them.
func kept(t *testing.T) map[string]string {
	t.Helper()
	other := httptest.NewServer(ociserver.New(ocimem.New(), nil))
	t.Cleanup(other.Close)
	return map[string]string{
		"distribution":            testregistry.Start(t, testregistry.Options{}).Host,
		"distribution, unchanged": testregistry.Start(t, testregistry.Options{NoDelete: true}).Host,
		"cuelabs":                 strings.TrimPrefix(other.URL, "http://"),
	}
}

func TestListsOfRegistries(t *testing.T) {
	c := ours(t)
	for name, host := range kept(t) {
		t.Run(name, func(t *testing.T) {
			u := newUser(t)
			ref := host + "/org/m"
			first := u.push(t, c.file, ref+":1")
			u.must(t, "tag", ref+":1", "1.0", "latest")
			if got := u.must(t, "tags", ref).stdout; got != "1\n1.0\nlatest\n" {
				t.Errorf("got the tags %q", got)
			}
			for i := range 12 {
				u.must(t, "tag", "-q", ref+":1", "t"+string(rune('a'+i)))
			}
			repo := remoteRepository(t, ref)
			if tags, err := registry.Tags(t.Context(), repo); err != nil || len(tags) != 15 {
				t.Errorf("oras-go: got %q, %v, want 15 tags", tags, err)
			}
			if got := u.must(t, "manifest", ref+":latest").stdout; digest.FromString(got).String() != first.Digest {
				t.Errorf("got a manifest of %s, want %s", digest.FromString(got), first.Digest)
			}
			attachAndList(t, u, ref, repo)
			pushOntoWhatHasReferrers(t, u, ref, c.file)
		})
	}
}

// attachAndList puts documents beside a model; oras-go lists the same.
func attachAndList(t *testing.T, u *user, ref string, repo *remote.Repository) {
	t.Helper()
	const spdx, eval = "application/spdx+json", "application/vnd.example.eval"
	for file, typ := range map[string]string{"sbom.json": spdx, "eval.csv": eval, "more.csv": eval} {
		if err := os.WriteFile(u.path(file), []byte(`{"of":"`+file+`"}`), 0o644); err != nil {
			t.Fatal(err)
		}
		once := u.must(t, "attach", "-q", ref+":1", file, "--type", typ, "--annotation", "org.example.file="+file).stdout
		if again := u.must(t, "attach", "-q", ref+":1", file, "--type", typ, "--annotation", "org.example.file="+file).stdout; again != once {
			t.Errorf("%s: attached as %s, and then as %s", file, once, again)
		}
	}
	desc, err := repo.Resolve(t.Context(), "1")
	if err != nil {
		t.Fatal(err)
	}
	for typ, want := range map[string]int{"": 3, spdx: 1, eval: 2, "application/vnd.example.none": 0} {
		args := []string{"referrers", "-q", ref + ":1"}
		if typ != "" {
			args = append(args, "--type", typ)
		}
		got := strings.Fields(u.must(t, args...).stdout)
		theirs, err := registry.Referrers(t.Context(), repo, desc, typ)
		if err != nil {
			t.Fatal(err)
		}
		var digests []string
		for _, d := range theirs {
			digests = append(digests, string(d.Digest))
			if d.ArtifactType == "" || d.Annotations["org.example.file"] == "" {
				t.Errorf("oras-go finds %+v, without type or annotations", d)
			}
		}
		slices.Sort(got)
		slices.Sort(digests)
		if len(got) != want || !slices.Equal(got, digests) {
			t.Errorf("of %q: got %q, and oras-go %q, want %d", typ, got, digests, want)
		}
	}
	// One that oras-go attaches is listed, too.
	sub := ocispec.Descriptor{MediaType: desc.MediaType, Digest: desc.Digest, Size: desc.Size}
	if theirs := pushWithOras(t, repo, sub); !strings.Contains(u.must(t, "referrers", "-q", ref+":1").stdout, theirs) {
		t.Errorf("what oras-go attached, %s, is not listed", theirs)
	}
}

// pushOntoWhatHasReferrers is an image form that names an artifact which has referrers
// already: it failed with 405 where nothing may be deleted.
func pushOntoWhatHasReferrers(t *testing.T, u *user, ref, file string) {
	t.Helper()
	u.must(t, "push", "-q", "--image", "--image-subject", file, ref+":i")
	u.must(t, "attach", "-q", ref+":i", "sbom.json", "--type", "application/spdx+json")
	u.must(t, "push", "-q", "--image", "--image-subject", "--layers", "tar", file, ref+":j")
	u.must(t, "push", "-q", "--image", "--image-subject", file, ref+":i", "--image-tag", "other")
	var list struct {
		Referrers []struct{ ArtifactType string }
	}
	out := u.must(t, "referrers", "--format", "json", ref+":i").stdout
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Referrers) < 2 {
		t.Errorf("got %v, %v, want the image form and a document", list, err)
	}
}

func TestRm(t *testing.T) {
	c := ours(t)
	for name, host := range kept(t) {
		t.Run(name, func(t *testing.T) {
			u := newUser(t)
			ref := host + "/org/m"
			dgst := u.push(t, c.file, ref+":1,2").Digest
			if r := u.run(t, "rm", "--yes", ref+":none"); r.code != 4 {
				t.Errorf("a tag that isn't there: got %d: %s", r.code, r.stderr)
			}
			if r := u.run(t, "rm", "--yes", ref+"@"+dgst); r.code != 1 || !strings.Contains(r.stderr, "has the tags 1, 2") {
				t.Errorf("a digest that is tagged: got %d: %s", r.code, r.stderr)
			}
			r := u.run(t, "rm", "--yes", ref+":1")
			if r.code == 0 {
				if got := u.must(t, "tags", ref).stdout; got != "2\n" {
					t.Errorf("got the tags %q", got)
				}
			} else if !strings.Contains(r.stderr, "answered 40") || !strings.Contains(r.stderr, "hint: many registries delete manifests and no tags") {
				t.Errorf("a tag: got %d: %s", r.code, r.stderr)
			}
			u.must(t, "verify", "-q", ref+":2")
			r = u.run(t, "rm", "--yes", "--force", ref+"@"+dgst)
			gone := u.run(t, "resolve", ref+":2").code == 4
			if refused := strings.Contains(r.stderr, "405") && strings.Contains(r.stderr, "hint: this registry deletes nothing"); gone != (r.code == 0) || !gone && !refused {
				t.Errorf("a digest: got %d, and it is gone: %v: %s", r.code, gone, r.stderr)
			}
		})
	}
}

// A folder that something was deleted from is whole for oras-go and for us.
func TestRmInALayout(t *testing.T) {
	c := ours(t)
	u := newUser(t)
	u.push(t, c.file, "oci:lay:1")
	u.must(t, "push", "-q", "--layers", "tar", "oci:lay:1", "oci:lay:2")
	u.must(t, "rm", "--yes", "oci:lay:1")
	u.must(t, "verify", "-q", "oci:lay:2")
	store, err := oci.New(u.path("lay"))
	if err != nil {
		t.Fatal(err)
	}
	if desc, err := store.Resolve(t.Context(), "2"); err != nil {
		t.Error(err)
	} else if next, err := store.Predecessors(t.Context(), desc); err != nil || len(next) != 0 {
		t.Errorf("got %v, %v", next, err)
	}
	before := treeSize(t, u.path("lay"))
	u.must(t, "rm", "--yes", "oci:lay:2")
	if after := treeSize(t, u.path("lay")); after > 1000 || before < 1000 {
		t.Errorf("%d bytes before and %d after, want nothing but the index", before, after)
	}
}

func treeSize(t *testing.T, dir string) (n int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		n += info.Size()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func remoteRepository(t *testing.T, name string) *remote.Repository {
	t.Helper()
	repo, err := remote.NewRepository(name)
	if err != nil {
		t.Fatal(err)
	}
	repo.PlainHTTP, repo.SkipReferrersGC = true, true
	return repo
}

// pushWithOras attaches something empty, and returns its digest.
func pushWithOras(t *testing.T, repo *remote.Repository, subject ocispec.Descriptor) string {
	t.Helper()
	desc, err := oras.PackManifest(t.Context(), repo, oras.PackManifestVersion1_1, "application/vnd.example.oras", oras.PackManifestOptions{Subject: &subject})
	if err != nil {
		t.Fatal(err)
	}
	return desc.Digest.String()
}
