package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/location"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

const aDigest = "sha256:f1cae5143a92a44e3a7e1d9c32a0245065dfb6e0f1e91c18b5e44356d081dfb5"

func TestPullSaysWhatItDid(t *testing.T) {
	target, src, out := inMemory(), sample(), filepath.Join(t.TempDir(), "m.carton")
	pushed := pushTo(t, target, "h.io/m:1", src)
	result, err := fresh(within(target)).Pull(t.Context(), "h.io/m:1", PullOptions{Output: out})
	if err != nil {
		t.Fatal(err)
	}
	if result.Digest != pushed.Digest || result.ModelHash != pushed.ModelHash || result.Path != out || result.AlreadyHere || result.Regenerated {
		t.Errorf("got %+v, want what was pushed: %+v", result, pushed)
	}
	// The twins are read once each: they are members.
	if want := pushed.Bytes() + 1; result.BytesDownloaded != want {
		t.Errorf("got %d bytes downloaded, want %d", result.BytesDownloaded, want)
	}
	fetches := target.fetches.Load()
	again, err := fresh(within(target)).Pull(t.Context(), "h.io/m@"+pushed.Digest.String(), PullOptions{Output: out})
	if err != nil || !again.AlreadyHere || again.Digest != pushed.Digest {
		t.Errorf("again: got %+v, %v, want it to be here already", again, err)
	}
	// Another pull needs the image manifest and MANIFEST, to know what should be here;
	// carton.toml is fetched with them.
	if n := target.fetches.Load() - fetches; n > 3 {
		t.Errorf("again: got %d fetches, want at most 3", n)
	}
}

func TestAnotherModelIsRefusedBeforeAnyBlob(t *testing.T) {
	other := strings.Repeat("0", 64)
	for name, mapping := range map[string]convert.Options{
		"raw layers": {}, "tar layers": {Layers: convert.FormTar}, "the draft's types": {MediaTypes: convert.FamilyDraft},
	} {
		target := inMemory()
		opts := PushOptions{Mapping: mapping}
		pushed, err := fresh(within(target)).PushSource(t.Context(), sample(), "sample", "h.io/m:1", opts)
		if err != nil {
			t.Fatal(err)
		}
		before := target.fetches.Load()
		dir := t.TempDir()
		pull := PullOptions{Output: filepath.Join(dir, "m.carton"), ModelHash: other}
		if _, err := fresh(within(target)).Pull(t.Context(), "h.io/m:1", pull); !errors.Is(err, carton.ErrChecksum) || !strings.Contains(err.Error(), "want "+other) {
			t.Errorf("%s: got %v, want ErrChecksum that names the wanted hash", name, err)
		}
		if n := target.fetches.Load() - before; n != 1 {
			t.Errorf("%s: got %d fetches, want the image manifest's alone", name, n)
		}
		pull.ModelHash = pushed.ModelHash
		if _, err := fresh(within(target)).Pull(t.Context(), "h.io/m:1", pull); err != nil {
			t.Errorf("%s: the right model: %v", name, err)
		}
	}
}

// An image manifest that lies about its model is found out by MANIFEST.
func TestAnAnnotationIsNoProof(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{})
	wanted := strings.Repeat("0", 64)
	forms, err := convert.Build(t.Context(), sample(), convert.Options{})
	if err != nil {
		t.Fatal(err)
	}
	honest := forms.Artifact
	art, err := layout.NewArtifact(layout.ArtifactSpec{
		ArtifactType: honest.ArtifactType, Config: honest.Config, Layers: honest.Layers,
		Annotations: map[string]string{convert.AnnotationModelHash: wanted, convert.AnnotationMapping: convert.Mapping},
	})
	if err != nil {
		t.Fatal(err)
	}
	repo, err := fresh().site(t.Context(), location.Location{Kind: location.KindRegistry, Registry: r.Host, Repository: "m"}, writing)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := layout.Push(t.Context(), repo.store, art, layout.PushOptions{Tags: []string{"1"}}); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "m.carton")
	if _, err := fresh().Pull(t.Context(), r.Host+"/m:1", PullOptions{Output: out, ModelHash: wanted}); !errors.Is(err, carton.ErrChecksum) {
		t.Errorf("got %v, want ErrChecksum", err)
	}
	if _, err := os.Lstat(out); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the output is there: %v", err)
	}
}

const byForce = "client.PullOptions.Force replaces it"

func TestWhatIsThereIsComparedWithWhatIsWanted(t *testing.T) {
	target := inMemory()
	pushTo(t, target, "h.io/m:1", sample())
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	other := cartontest.New(map[string][]byte{"model/other": []byte("x")}, nil)
	must(carton.Assemble(t.Context(), in("same.carton"), sample(), carton.AssembleOptions{}))
	must(carton.Assemble(t.Context(), in("other.carton"), other, carton.AssembleOptions{}))
	must(carton.Extract(t.Context(), in("same"), sample(), carton.ExtractOptions{}))
	must(carton.Extract(t.Context(), in("other"), other, carton.ExtractOptions{}))
	must(carton.Extract(t.Context(), in("damaged"), sample(), carton.ExtractOptions{}))
	must(os.WriteFile(filepath.Join(in("damaged"), "model", "b.bin"), []byte("B"), 0o644))
	must(os.WriteFile(in("text"), []byte("text"), 0o644))
	must(os.Symlink("nowhere", in("dangling")))
	must(os.Mkdir(in("empty"), 0o755))
	must(os.Mkdir(in("notes"), 0o755))
	must(os.WriteFile(filepath.Join(in("notes"), "notes.txt"), []byte("mine"), 0o644))
	must(carton.Extract(t.Context(), in("noted"), sample(), carton.ExtractOptions{}))
	must(os.WriteFile(filepath.Join(in("noted"), "model", "notes.txt"), []byte("mine"), 0o644))

	for name, test := range map[string]struct {
		opts PullOptions
		want string // in the error; "" for already here
		hint string // "" for byForce
	}{
		"the same file":          {PullOptions{Output: in("same.carton")}, "", ""},
		"another file":           {PullOptions{Output: in("other.carton")}, "is another model", ""},
		"a folder for a file":    {PullOptions{Output: in("same")}, "is a folder, want a file", "name a file"},
		"no carton":              {PullOptions{Output: in("text")}, "is not such a carton", ""},
		"a dangling symlink":     {PullOptions{Output: in("dangling")}, "is a symlink, want a file", "name what the symlink points to"},
		"the same folder":        {PullOptions{Unpack: in("same")}, "", ""},
		"another folder":         {PullOptions{Unpack: in("other")}, "is another model", ""},
		"a damaged folder":       {PullOptions{Unpack: in("damaged")}, "is damaged: model/b.bin", ""},
		"a folder of notes":      {PullOptions{Unpack: in("notes")}, "is not such a carton", "move that away"},
		"a carton and notes":     {PullOptions{Unpack: in("noted")}, "is not such a carton", "move that away"},
		"a file for a folder":    {PullOptions{Unpack: in("same.carton")}, "is a regular file, want a folder", "give another name"},
		"a choice, folder there": {PullOptions{Unpack: in("same"), Include: []string{"*.bin"}}, "holds MANIFEST, which is not of this choice", ""},
		"a choice, notes there":  {PullOptions{Unpack: in("notes"), Folder: "model"}, "holds notes.txt, which is not of this choice", "move that away"},
		"a whole one for a thin": {PullOptions{Output: in("same.carton"), Thin: true, LinkBase: "https://h"}, "is not thin", ""},
	} {
		result, err := fresh(within(target)).Pull(t.Context(), "h.io/m:1", test.opts)
		if test.want == "" {
			if err != nil || !result.AlreadyHere {
				t.Errorf("%s: got %+v, %v, want it to be here already", name, result, err)
			}
			continue
		}
		if !errors.Is(err, carton.ErrExist) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want ErrExist: … %s", name, err, test.want)
		}
		want := cmp.Or(test.hint, byForce)
		if !slices.ContainsFunc(hint.Of(err), func(h hint.Hint) bool { return strings.HasPrefix(h.String(), want) }) {
			t.Errorf("%s: got the hints %q, want %q", name, hint.Of(err), want)
		}
		// A hint is true.
		if want != byForce {
			before := testTree(t, dir)
			test.opts.Force = true
			if _, err := fresh(within(target)).Pull(t.Context(), "h.io/m:1", test.opts); err == nil || strings.Contains(fmt.Sprint(hint.Of(err)), byForce) {
				t.Errorf("%s: by force: got %v", name, err)
			}
			if after := testTree(t, dir); !slices.Equal(before, after) {
				t.Errorf("%s: by force: got %q, want %q", name, after, before)
			}
		}
	}

	// An empty folder is nothing; by force, everything else goes.
	for _, o := range []PullOptions{
		{Unpack: in("empty")}, {Output: in("other.carton"), Force: true}, {Unpack: in("damaged"), Force: true}, {Output: in("text"), Force: true},
	} {
		if result, err := fresh(within(target)).Pull(t.Context(), "h.io/m:1", o); err != nil || result.AlreadyHere {
			t.Errorf("%+v: got %+v, %v", o, result, err)
		}
	}
	same(t, in("same.carton"), in("other.carton"))
	same(t, in("same.carton"), in("text"))
}

func TestDefaultNames(t *testing.T) {
	home, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	const twelve = "f1cae5143a92"
	for s, want := range map[string]string{
		"h.io/org/m:1.2":              "m-1.2.carton",
		"h.io/m@" + aDigest:           "m-" + twelve + ".carton",
		"h.io/m:1@" + aDigest:         "m-" + twelve + ".carton",
		"oci:some/where:1":            "where-1.carton",
		"oci:some/where@" + aDigest:   "where-" + twelve + ".carton",
		"oci:.:1":                     filepath.Base(home) + "-1.carton",
		"https://h/a/m.carton?x=y#z":  "m.carton",
		"https://h/a/m":               "m.carton",
		"https://h/a/m%20n.carton":    "m n.carton",
		"https://h/%2e%2e%2fm.carton": "m.carton",
		"https://h":                   "",
		"https://h/":                  "",
		"https://h/a%5cb.carton":      "",
		"https://h/a%0ab.carton":      "",
		"./m.carton":                  "",
		"./folder":                    "",
	} {
		loc, err := location.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		got, err := defaultName(loc, aDigest)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v, want %q", s, got, err, want)
		}
	}
}

func TestOptionsThatContradictEachOther(t *testing.T) {
	for _, o := range []PullOptions{
		{Unpack: "d", Output: "f"},
		{Unpack: "d", Thin: true},
		{Folder: "model"},
		{Include: []string{"*"}},
		{Exclude: []string{"*"}},
		{LinkBase: "https://h"},
	} {
		if _, err := fresh(within(inMemory())).Pull(t.Context(), "h.io/m:1", o); err == nil || errors.Is(err, layout.ErrNotFound) {
			t.Errorf("%+v: got %v, want an error about the options", o, err)
		}
	}
}

func TestNothingIsLeftOfAPullThatFails(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{})
	pushed, err := fresh().PushSource(t.Context(), sample(), "sample", r.Host+"/m:1", PushOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r.Corrupt("m", pushed.Layers[2].Digest, make([]byte, 10_000))
	dir := t.TempDir()
	for _, o := range []PullOptions{{Output: filepath.Join(dir, "m.carton")}, {Unpack: filepath.Join(dir, "m")}} {
		if _, err := fresh().Pull(t.Context(), r.Host+"/m:1", o); !errors.Is(err, carton.ErrChecksum) && !errors.Is(err, layout.ErrDigest) {
			t.Errorf("got %v, want ErrChecksum or ErrDigest", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := fresh().Pull(ctx, r.Host+"/m:1", PullOptions{Output: filepath.Join(dir, "m.carton")}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("got %v left, want nothing", entries)
	}
}

// Of two pulls of one name the second fails at once, and harms nothing.
func TestTwoPullsOfOneName(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{})
	pushed, err := fresh().PushSource(t.Context(), sample(), "sample", r.Host+"/m:1", PushOptions{})
	if err != nil {
		t.Fatal(err)
	}
	weights := pushed.Layers[2]
	reached, goOn := make(chan struct{}), make(chan struct{})
	r.Break(registrytest.Fault{
		Methods: "GET", Path: weights.Digest.String(),
		Effect: func(w http.ResponseWriter, req *http.Request, next http.Handler) {
			close(reached)
			select {
			case <-goOn:
			case <-r.Done():
			}
			next.ServeHTTP(w, req)
		},
	})
	out := filepath.Join(t.TempDir(), "m.carton")
	first := make(chan error, 1)
	go func() {
		_, err := fresh().Pull(t.Context(), r.Host+"/m:1", PullOptions{Output: out})
		first <- err
	}()
	select {
	case <-reached:
	case err := <-first:
		t.Fatalf("the first pull ended: %v", err)
	}
	if _, err := fresh().Pull(t.Context(), r.Host+"/m:1", PullOptions{Output: out}); !errors.Is(err, carton.ErrBusy) {
		t.Errorf("the second: got %v, want ErrBusy", err)
	}
	close(goOn)
	if err := <-first; err != nil {
		t.Errorf("the first: %v", err)
	}
	src, err := carton.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	report, err := carton.Verify(t.Context(), src, carton.VerifyOptions{})
	if err != nil || !report.OK() {
		t.Errorf("got %+v, %v, want it whole", report, err)
	}
}

// The tag that moves while it is pulled is pinned by its digest.
func TestATagIsResolvedOnce(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{})
	first, err := fresh().PushSource(t.Context(), sample(), "sample", r.Host+"/m:1", PushOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r.Forget()
	result, err := fresh().Pull(t.Context(), r.Host+"/m:1", PullOptions{Output: filepath.Join(t.TempDir(), "m.carton")})
	if err != nil {
		t.Fatal(err)
	}
	if result.Digest != first.Digest || r.Count("", "/manifests/1") != 1 {
		t.Errorf("got %s and %d requests for the tag, want %s and one", result.Digest, r.Count("", "/manifests/1"), first.Digest)
	}
}

func TestResolve(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{})
	first, err := fresh().PushSource(t.Context(), sample(), "sample", r.Host+"/m:latest", PushOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var desc ocispec.Descriptor
	for _, ref := range []string{r.Host + "/m", r.Host + "/m:latest", r.Host + "/m@" + first.Digest.String()} {
		if desc, err = fresh().Resolve(t.Context(), ref); err != nil || desc.Digest != first.Digest {
			t.Errorf("%s: got %v, %v, want %s", ref, desc, err, first.Digest)
		}
	}
	if _, err := fresh().Resolve(t.Context(), r.Host+"/m:none"); !errors.Is(err, layout.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	if _, err := fresh().Resolve(t.Context(), "./m.carton"); !errors.Is(err, location.ErrLocation) {
		t.Errorf("got %v, want location.ErrLocation", err)
	}
}
