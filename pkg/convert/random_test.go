package convert

import (
	"fmt"
	"io"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// randomCarton is a carton with any names, sizes and symlinks.
func randomCarton(rnd *rand.Rand) *cartontest.Source {
	pick := func(from ...string) string { return from[rnd.IntN(len(from))] }
	files, symlinks := map[string][]byte{}, map[string]string{}
	var paths carton.Paths
	var targets []string
	for range 1 + rnd.IntN(120) {
		p := pick("model", "model", "model", "tensor_data", "misc", "other") + "/"
		for range rnd.IntN(4) {
			p += pick("a", "b", ".hidden", "with space", "ü", strings.Repeat("long", 30)) + "/"
		}
		p += fmt.Sprint(rnd.IntN(1000)) + pick("", ".py", ".json", ".bin", ".safetensors", ".md", "=", ".tar", ".so.1")
		if paths.Add(p) != nil {
			continue
		}
		if model := strings.HasPrefix(p, "model/"); model && len(targets) > 0 && rnd.IntN(5) == 0 {
			to := targets[rnd.IntN(len(targets))]
			symlinks[p] = shortest(path.Dir(p), to)
			continue
		} else if model {
			targets = append(targets, p)
		}
		data := make([]byte, []int{0, 1, 100, 511, 512, 513, 4095, 4096, 9000}[rnd.IntN(9)])
		for i := range data {
			data[i] = byte(rnd.Uint32() >> 5)
		}
		files[p] = data
	}
	return cartontest.New(files, symlinks)
}

// shortest is the shortest relative path from a folder to a file.
func shortest(dir, to string) string {
	from, rest := strings.Split(dir, "/"), strings.Split(to, "/")
	for len(from) > 0 && len(rest) > 1 && from[0] == rest[0] {
		from, rest = from[1:], rest[1:]
	}
	return strings.Repeat("../", len(from)) + strings.Join(rest, "/")
}

func randomOptions(rnd *rand.Rand) Options {
	return Options{
		Layers:      []Form{FormRaw, FormTar}[rnd.IntN(2)],
		MediaTypes:  []Family{FamilyCNAI, FamilyCNCF, FamilyDraft}[rnd.IntN(3)],
		Compress:    []Compression{CompressNone, CompressZstd, CompressGzip}[rnd.IntN(3)],
		BundleBelow: []int64{0, 0, -1, 1, 512, 5000, 1 << 30}[rnd.IntN(7)],
	}
}

// Any carton comes back from any artifact of it, and every layer and image
// manifest is what its options say.
func FuzzRoundTrip(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		want, opts := randomCarton(rnd), randomOptions(rnd)
		s, desc, a := pushed(t, want, opts)
		checkLayers(t, a, opts)
		got := opened(t, s, desc, OpenOptions{})
		if got.Manifest().ModelHash() != want.Manifest().ModelHash() {
			t.Fatal("another model hash")
		}
		wantMembers, _ := want.Members(t.Context())
		members, err := got.Members(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wantMembers, members, cmpopts.IgnoreFields(carton.Member{}, "Place", "Bundle", "Ranged")); diff != "" {
			t.Fatal(diff)
		}
		order := slices.Clone(members)
		if rnd.IntN(2) == 0 {
			rnd.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		for _, m := range order {
			all := content(t, want, m.Path)
			if content(t, got, m.Path) != all {
				t.Fatalf("%s: content differs", m.Path)
			}
			off := rnd.Int64N(m.Size + 2)
			n := rnd.Int64N(m.Size+2) - 1
			r, err := got.OpenRange(t.Context(), m.Path, off, n)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(r)
			r.Close()
			if part, short := rangeOf(all, off, n); string(b) != part || short != (err != nil) {
				t.Fatalf("%s %d+%d: got %d bytes, %v, want %d", m.Path, off, n, len(b), err, len(part))
			}
		}
		again, err := artifactOf(t.Context(), got, opts)
		if err != nil || again.Digest != a.Digest {
			t.Fatalf("the artifact of the artifact is another: %v", err)
		}
	})
}

// checkLayers holds what is true of every artifact.
func checkLayers(t *testing.T, a *layout.Artifact, opts Options) {
	t.Helper()
	if len(a.Layers) > maxLayers || len(a.Manifest) > layout.MaxManifestBytes {
		t.Errorf("%d layers, %d bytes", len(a.Layers), len(a.Manifest))
	}
	names := map[string]bool{}
	for _, l := range a.Layers {
		c, form, ok := parseMediaType(l.MediaType)
		if !ok || l.Name != l.Annotations[filepathCNAI] || l.Name != l.Annotations[filepathCNCF] {
			t.Errorf("%s: got %s, %v", l.Name, l.MediaType, l.Annotations)
		}
		if names[l.Name] {
			t.Errorf("two layers are called %s", l.Name)
		}
		names[l.Name] = true
		if c == categoryWeight && form.compression() != "" {
			t.Errorf("%s: weights are compressed", l.Name)
		}
		if l.Size == 0 {
			t.Errorf("%s is an empty blob", l.Name)
		}
		special := l.Name == carton.ManifestName || l.Name == carton.InfoName
		if form == formatRaw && !special && opts.Layers == FormTar {
			t.Errorf("%s is raw among tar layers", l.Name)
		}
		if opts.MediaTypes == FamilyDraft && strings.HasSuffix(l.MediaType, ".raw") {
			t.Errorf("%s has the type %s in the draft", l.Name, l.MediaType)
		}
	}
}
