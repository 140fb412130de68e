package convert

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

var update = flag.Bool("update", false, "write testdata/golden.txt anew")

// modes are the options whose output is pinned.
func modes() map[string]Options {
	all := map[string]Options{}
	for _, family := range []Family{FamilyCNAI, FamilyCNCF, FamilyDraft} {
		all[string(family)] = Options{MediaTypes: family}
		for _, form := range []Form{FormRaw, FormTar} {
			for _, c := range []Compression{CompressNone, CompressZstd, CompressGzip} {
				name := fmt.Sprintf("%s layers=%s compress=%s bundle-below=100", family, form, c)
				all[name] = Options{Layers: form, MediaTypes: family, Compress: c, BundleBelow: 100}
			}
		}
	}
	all["cnai created"] = Options{Created: time.Unix(1700000000, 0)}
	return all
}

// digestsOf is a line for the image manifest, the config and each layer.
func digestsOf(t *testing.T, src carton.Source, opts Options) string {
	t.Helper()
	_, _, a := pushed(t, src, opts)
	lines := []string{a.Digest.Encoded() + " image manifest", a.Config.Digest.Encoded() + " config"}
	for _, l := range a.Layers {
		lines = append(lines, l.Digest.Encoded()+" "+l.Name)
	}
	return strings.Join(lines, "\n") + "\n"
}

// hubMode is the default mapping of another carton.
const hubMode = "names of hubs"

// What mapping 1 makes of one carton never changes. A digest here that is not
// the one that the code makes is a mistake in the code.
func TestGoldenDigests(t *testing.T) {
	file := filepath.Join("testdata", "golden.txt")
	if *update {
		var b strings.Builder
		for _, name := range sortedKeys(modes()) {
			fmt.Fprintf(&b, "== %s\n%s", name, digestsOf(t, kinds(), modes()[name]))
		}
		fmt.Fprintf(&b, "== %s\n%s", hubMode, digestsOf(t, hubCarton(), Options{}))
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden := readGolden(t, file)
	if len(golden) != len(modes())+1 {
		t.Errorf("%s has %d modes, want %d", file, len(golden), len(modes())+1)
	}
	if diff := cmp.Diff(golden[hubMode], digestsOf(t, hubCarton(), Options{})); diff != "" {
		t.Errorf("%s: %s", hubMode, diff)
	}
	for name, opts := range modes() {
		if diff := cmp.Diff(golden[name], digestsOf(t, kinds(), opts)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func readGolden(t *testing.T, file string) map[string]string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	golden := map[string]string{}
	for _, section := range strings.Split(string(b), "== ")[1:] {
		name, digests, _ := strings.Cut(section, "\n")
		golden[name] = digests
	}
	return golden
}

// The digest of a real carton, written by the reference implementation.
func TestGoldenDigestOfARealCarton(t *testing.T) {
	src, err := carton.Open(testenv.Foreign(t, "carton/test.carton"))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	s, desc, a := pushed(t, src, Options{})
	const want = "sha256:579b45c0b9890cd43a173085c63e34ef513cc4e32561fac28b3a64a8be76e16d"
	if a.Digest != want {
		t.Errorf("got the image manifest %s, want %s", a.Digest, want)
	}
	const modelHash = "f1cae5143a92a44e3a7e1d9c32a0245065dfb6e0f1e91c18b5e44356d081dfb5"
	if got := a.Layers[0].Digest.Encoded(); got != modelHash {
		t.Errorf("the layer of MANIFEST: got %s, want %s", got, modelHash)
	}
	report, err := carton.Verify(t.Context(), opened(t, s, desc, OpenOptions{}), carton.VerifyOptions{})
	if err != nil || report.ModelHash != modelHash {
		t.Errorf("the artifact: got %+v, %v", report, err)
	}
}
