package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/content/oci"
)

// The promise: an archive that we write is read by the programs that people move
// images with, one that they write is read by us, and over an air gap everything
// arrives that belongs to a model.

// attachTo pushes an artifact about a subject, as oras attach does, and returns its
// descriptor.
func attachTo(t *testing.T, ref string, subject ocispec.Descriptor, artifactType, text string) ocispec.Descriptor {
	t.Helper()
	repo := orasRepository(t, ref)
	store := memory.New()
	layer := content.NewDescriptorFromBytes("text/plain", []byte(text))
	if err := store.Push(t.Context(), layer, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	desc, err := oras.PackManifest(t.Context(), store, oras.PackManifestVersion1_1, artifactType, oras.PackManifestOptions{
		Subject: &subject, Layers: []ocispec.Descriptor{layer},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := oras.CopyGraph(t.Context(), store, repo, desc, oras.DefaultCopyGraphOptions); err != nil {
		t.Fatal(err)
	}
	return desc
}

// cosignTag keeps text under the tag that cosign looks for a signature at.
func cosignTag(t *testing.T, ref string, subject ocispec.Descriptor, text string) (tag string, of ocispec.Descriptor) {
	t.Helper()
	repo := orasRepository(t, ref)
	layer, err := oras.PushBytes(t.Context(), repo, "application/vnd.dev.cosign.simplesigning.v1+json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	config, err := oras.PushBytes(t.Context(), repo, "application/vnd.oci.image.config.v1+json", []byte(`{"architecture":"","os":""}`))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, Config: config, Layers: []ocispec.Descriptor{layer},
	})
	if err != nil {
		t.Fatal(err)
	}
	tag = "sha256-" + subject.Digest.Encoded() + ".sig"
	if of, err = oras.TagBytes(t.Context(), repo, ocispec.MediaTypeImageManifest, raw, tag); err != nil {
		t.Fatal(err)
	}
	return tag, of
}

// predecessors returns the digests of what refers to a subject, as oras-go finds it.
func predecessors(ctx context.Context, t *testing.T, from content.PredecessorFinder, subject ocispec.Descriptor) []digest.Digest {
	t.Helper()
	list, err := from.Predecessors(ctx, subject)
	if err != nil {
		t.Fatal(err)
	}
	var digests []digest.Digest
	for _, d := range list {
		digests = append(digests, d.Digest)
	}
	slices.Sort(digests)
	return digests
}

func TestOverAnAirGap(t *testing.T) {
	u := newUser(t)
	m := mixedModel()
	m.write(t, u.path("m.carton"))
	outside, inside := testregistry.Start(t, testregistry.Options{}), testregistry.Start(t, testregistry.Options{})
	ref := outside.Host + "/org/m:1"
	pushed := u.push(t, "m.carton", ref, "--image", "--layers", "tar")
	resolve := func(ref string) ocispec.Descriptor {
		repo := orasRepository(t, ref)
		desc, err := repo.Resolve(t.Context(), repo.Reference.Reference)
		if err != nil {
			t.Fatal(err)
		}
		return desc
	}
	art, image := resolve(ref), resolve(ref+"-image")
	sbom := attachTo(t, ref, art, "application/spdx+json", "an SBOM")
	ofSBOM := attachTo(t, ref, sbom, "application/vnd.example.signature", "a signature of it")
	ofImage := attachTo(t, ref, image, "application/vnd.example.signature", "a signature of the image form")
	tag, cosigned := cosignTag(t, ref, art, "a signature")

	u.must(t, "cp", "-r", ref, "m.oci.tar")
	there := inside.Host + "/models/m"
	inside.Traffic.Reset()
	if got := strings.TrimSpace(u.must(t, "cp", "-r", "-q", "m.oci.tar", there).stdout); got != pushed.Digest {
		t.Errorf("got digest %s, want %s", got, pushed.Digest)
	}
	arrived := func(what string, from content.PredecessorFinder) {
		for subject, want := range map[*ocispec.Descriptor]ocispec.Descriptor{&art: sbom, &sbom: ofSBOM, &image: ofImage} {
			if got := predecessors(t.Context(), t, from, *subject); !slices.Contains(got, want.Digest) {
				t.Errorf("%s: of %s there are the referrers %q, want %s", what, subject.Digest, got, want.Digest)
			}
		}
	}
	arrived("inside", orasRepository(t, there+":1"))
	for name, want := range map[string]ocispec.Descriptor{"1": art, "1-image": image, tag: cosigned} {
		if got := resolve(there + ":" + name); got.Digest != want.Digest {
			t.Errorf("%s: got %s, want %s", name, got.Digest, want.Digest)
		}
	}
	if back := u.pull(t, there+":1", "-o", "back.carton"); back.ModelHash != m.hash() {
		t.Errorf("got model hash %s, want %s", back.ModelHash, m.hash())
	}

	// Again, nothing is sent; and the archive that is made inside is the same file.
	inside.Traffic.Reset()
	u.must(t, "cp", "-r", "m.oci.tar", there)
	if n := inside.Traffic.BlobBytesIn(); n != 0 {
		t.Errorf("the second time %d bytes were sent\n%v", n, &inside.Traffic)
	}
	u.must(t, "cp", "-r", there+":1", "again.oci.tar")
	if a, b := fileSum(t, u.path("m.oci.tar")), fileSum(t, u.path("again.oci.tar")); a != b {
		t.Errorf("the archives differ: %s and %s", a, b)
	}

	// oras-go reads the archive without unpacking it, referrers too.
	store, err := oci.NewFromTar(t.Context(), u.path("m.oci.tar"))
	if err != nil {
		t.Fatal(err)
	}
	arrived("oras-go, the archive", store)
	if desc, err := store.Resolve(t.Context(), "1"); err != nil || desc.Digest != art.Digest {
		t.Errorf("oras-go: got %v, %v", desc, err)
	}
	// And what oras-go copies into a layout, we find.
	folder, err := oci.New(u.path("layout"))
	if err != nil {
		t.Fatal(err)
	}
	src := orasRepository(t, ref)
	if _, err := oras.ExtendedCopy(t.Context(), src, "1", folder, "1", oras.DefaultExtendedCopyOptions); err != nil {
		t.Fatal(err)
	}
	var copied struct {
		With []struct{ Kind, Digest string }
	}
	u.json(t, &copied, []string{"cp", "-r", "oci:layout:1", inside.Host + "/models/oras:1", "--format", "json"})
	if len(copied.With) != 2 {
		t.Errorf("of what oras-go copied went along: %+v, want the SBOM and its signature", copied.With)
	}
}

func TestArchivesOfOtherPrograms(t *testing.T) {
	u := newUser(t)
	m := mixedModel()
	m.write(t, u.path("m.carton"))
	from, to := testregistry.Start(t, testregistry.Options{}), testregistry.Start(t, testregistry.Options{})
	ref := from.Host + "/org/m:1"
	u.push(t, "m.carton", ref, "--image")
	digests := map[string]string{}
	for _, tag := range []string{"1", "1-image"} {
		digests[tag] = strings.TrimSpace(u.must(t, "resolve", "-q", from.Host+"/org/m:"+tag).stdout)
	}
	u.must(t, "cp", "-r", ref, "m.oci.tar")
	same := func(t *testing.T, ref, tag string) {
		t.Helper()
		if got := strings.TrimSpace(u.must(t, "resolve", "-q", ref).stdout); got != digests[tag] {
			t.Errorf("%s: got %s, want %s", ref, got, digests[tag])
		}
		u.must(t, "verify", ref)
	}

	t.Run("skopeo", func(t *testing.T) {
		skopeo := testenv.Program(t, "skopeo")
		flags := []string{"--insecure-policy", "copy", "--src-tls-verify=false", "--dest-tls-verify=false", "--preserve-digests"}
		for tag := range digests {
			u.output(t, skopeo, append(flags, "oci-archive:"+u.path("m.oci.tar")+":"+tag, "docker://"+to.Host+"/skopeo/m:"+tag)...)
			same(t, to.Host+"/skopeo/m:"+tag, tag)
			u.output(t, skopeo, append(flags, "docker://"+from.Host+"/org/m:"+tag, "oci-archive:"+u.path("skopeo-"+tag+".tar")+":"+tag)...)
			same(t, "oci-archive:skopeo-"+tag+".tar:"+tag, tag)
			same(t, "oci-archive:skopeo-"+tag+".tar", tag) // it holds nothing else
			u.must(t, "cp", "oci-archive:skopeo-"+tag+".tar", to.Host+"/from-skopeo/m")
			same(t, to.Host+"/from-skopeo/m:"+tag, tag)
		}
	})
	t.Run("crane", func(t *testing.T) {
		program := filepath.Join(crane.Build(t), "crane")
		for tag := range digests {
			dir := "crane-" + tag
			u.output(t, program, "pull", "--insecure", "--format", "oci", from.Host+"/org/m:"+tag, dir)
			u.output(t, "tar", "-cf", dir+".oci.tar", "-C", dir, ".")
			same(t, dir+".oci.tar", tag)
			u.must(t, "cp", from.Host+"/org/m:"+tag, "one-"+tag+".oci.tar")
			if err := os.Mkdir(u.path("one-"+tag), 0o755); err != nil {
				t.Fatal(err)
			}
			u.output(t, "tar", "-xf", "one-"+tag+".oci.tar", "-C", "one-"+tag)
			u.output(t, program, "push", "--insecure", "one-"+tag, to.Host+"/crane/m:"+tag)
			same(t, to.Host+"/crane/m:"+tag, tag)
		}
	})
}

// Two copies at once into one place are as good as one; an archive has one writer.
func TestCopiesAtOnce(t *testing.T) {
	u := newUser(t)
	partialModel().write(t, u.path("m.carton"))
	s, to := testregistry.Start(t, testregistry.Options{}), testregistry.Start(t, testregistry.Options{})
	ref := s.Host + "/org/m:1"
	want := u.push(t, "m.carton", ref).Digest
	for _, place := range []string{"oci:layout:1", to.Host + "/org/m:1", "m.oci.tar:1"} {
		results := make([]result, 3)
		var running sync.WaitGroup
		for i := range results {
			running.Go(func() { results[i] = u.run(t, "cp", "-q", ref, place) })
		}
		running.Wait()
		done := 0
		for _, r := range results {
			switch {
			case r.code == 0 && strings.TrimSpace(r.stdout) == want:
				done++
			case !strings.Contains(place, ".tar") || !strings.Contains(r.stderr, "is being written by another process"):
				t.Errorf("%s: exit code %d, %s%s", place, r.code, r.stdout, r.stderr)
			}
		}
		if done == 0 || done < 3 && !strings.Contains(place, ".tar") {
			t.Errorf("%s: %d copies are done", place, done)
		}
		if got := strings.TrimSpace(u.must(t, "resolve", "-q", place).stdout); got != want {
			t.Errorf("%s: got %s, want %s", place, got, want)
		}
		u.must(t, "verify", place)
	}
}

// A tag that moves while it is copied changes nothing of the copy.
func TestATagMovesWhileItIsCopied(t *testing.T) {
	u := newUser(t)
	newModel(map[string]string{"model/a.bin": random("a", 4<<20)}).write(t, u.path("a.carton"))
	newModel(map[string]string{"model/a.bin": random("b", 4<<20)}).write(t, u.path("b.carton"))
	s, to := testregistry.Start(t, testregistry.Options{}), testregistry.Start(t, testregistry.Options{})
	first := u.push(t, "a.carton", s.Host+"/org/m:1", "--image", "--layers", "tar")
	trap := newTrap(false, 1<<20)
	front := s.Front(t, trap.middleware)
	done := make(chan result, 1)
	go func() { done <- u.run(t, "cp", "-r", "-q", front.Host+"/org/m:1", to.Host+"/org/m:1") }()
	<-trap.sprung
	v := newUser(t)
	v.must(t, "push", u.path("b.carton"), s.Host+"/org/m:1", "--image", "--layers", "tar")
	close(trap.ended)
	if r := <-done; r.code != 0 || strings.TrimSpace(r.stdout) != first.Digest {
		t.Errorf("exit code %d, got %s, want %s\n%s", r.code, r.stdout, first.Digest, r.stderr)
	}
	if back := u.pull(t, to.Host+"/org/m:1-image", "-o", "back.carton"); back.ModelHash != first.ModelHash {
		t.Errorf("the image form: got model hash %s, want %s", back.ModelHash, first.ModelHash)
	}
}
