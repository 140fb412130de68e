package convert

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

func TestOptionsThatAreNone(t *testing.T) {
	for text, opts := range map[string]Options{
		`layers: got "flat"`:           {Layers: "flat"},
		`media types: got "oci"`:       {MediaTypes: "oci"},
		`compression: got "lzma"`:      {Compress: "lzma"},
		"annotation run.carton.layers": {Annotations: map[string]string{"run.carton.layers": "1"}},
		"want at most 500":             {BundleBelow: 1},
	} {
		files := map[string][]byte{}
		for i := range 600 {
			files[fmt.Sprintf("misc/%d", i)] = []byte{1}
		}
		if _, err := artifactOf(t.Context(), cartontest.New(files, nil), opts); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %s", err, text)
		}
	}
}

func TestCartonTomlWithErrors(t *testing.T) {
	broken := strings.Replace(fullInfo, `"https://example.com/home"`, "7", 1)
	src := func() carton.Source {
		return cartontest.New(map[string][]byte{"carton.toml": []byte(broken), "model/a": []byte("a")}, nil)
	}
	if _, err := artifactOf(t.Context(), src(), Options{}); !errors.Is(err, carton.ErrFormat) {
		t.Errorf("got %v, want ErrFormat", err)
	}
	a, err := artifactOf(t.Context(), src(), Options{AllowInvalid: true})
	if err != nil {
		t.Fatal(err)
	}
	m, _ := layout.ParseManifest(a.Manifest)
	if got := m.Annotations["run.carton.runner.name"]; got != "python" {
		t.Errorf("the runner's name: got %q, want what could be read", got)
	}
	if got, ok := m.Annotations["org.opencontainers.image.url"]; ok {
		t.Errorf("got the url %q from a number", got)
	}
	empty := cartontest.New(map[string][]byte{"carton.toml": nil, "model/a": []byte("a")}, nil)
	if _, err := artifactOf(t.Context(), empty, Options{AllowInvalid: true}); err != nil {
		t.Errorf("an empty carton.toml: %v", err)
	}
}

func TestCartonTomlIsNeverForgivenItsHash(t *testing.T) {
	src := cartontest.New(nil, nil, cartontest.WithOpen(func(string, int, io.Reader) (io.Reader, error) {
		return strings.NewReader("other bytes"), nil
	}))
	if _, err := artifactOf(t.Context(), src, Options{AllowInvalid: true}); !errors.Is(err, carton.ErrChecksum) {
		t.Errorf("got %v, want ErrChecksum", err)
	}
}

func TestMembersCanGrowKnown(t *testing.T) {
	want, err := artifactOf(t.Context(), kinds(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	src := kinds(cartontest.WithUnknownSize("model/weights-1.bin", "model/same.bin", "model/snapshots/1/w.bin"))
	got, err := artifactOf(t.Context(), src, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Digest != want.Digest {
		t.Error("another digest where a size had to be learnt")
	}
	opens := src.Opens("model/weights-1.bin") + src.Opens("model/same.bin") + src.Opens("model/snapshots/1/w.bin")
	if opens != 1 {
		t.Errorf("read one content %d times to learn its size, want once", opens)
	}
}

func TestWhatIsNotBundledIsNotRead(t *testing.T) {
	src := kinds()
	if _, err := artifactOf(t.Context(), src, Options{}); err != nil {
		t.Fatal(err)
	}
	want := []string{"carton.toml", "model/.hidden", "model/__init__.py"}
	if diff := cmp.Diff(want, slices.Sorted(slices.Values(src.Opened()))); diff != "" {
		t.Error(diff)
	}
	if n := src.Unclosed(); n != 0 {
		t.Errorf("%d readers are open", n)
	}
}

func TestBundledMembersAreVerified(t *testing.T) {
	files, symlinks := kindsOfMembers()
	src := cartontest.New(files, symlinks, cartontest.WithOpen(func(path string, _ int, r io.Reader) (io.Reader, error) {
		if path == "misc/image.png" {
			return strings.NewReader("an image"), nil
		}
		return r, nil
	}))
	for _, c := range []Compression{CompressNone, CompressZstd, CompressGzip} {
		_, err := artifactOf(t.Context(), src, Options{BundleBelow: 100, Compress: c})
		if !errors.Is(err, carton.ErrChecksum) || !strings.Contains(err.Error(), "misc/image.png") {
			t.Errorf("%s: got %v, want ErrChecksum of misc/image.png", c, err)
		}
	}
}

func TestASourceThatFails(t *testing.T) {
	broken := errors.New("broken")
	if _, err := artifactOf(t.Context(), cartontest.New(nil, nil, cartontest.WithMembersError(broken)), Options{}); !errors.Is(err, broken) {
		t.Errorf("got %v, want the source's error", err)
	}
	src := kinds(cartontest.WithOpen(func(path string, _ int, r io.Reader) (io.Reader, error) {
		if strings.HasPrefix(path, "misc/") {
			return cartontest.FailAfter(r, 3, io.ErrUnexpectedEOF), nil
		}
		return r, nil
	}))
	for _, c := range []Compression{CompressNone, CompressZstd, CompressGzip} {
		// A member that is cut short is no end of the bundle.
		_, err := artifactOf(t.Context(), src, Options{BundleBelow: 100, Compress: c})
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: got %v, want ErrUnexpectedEOF", c, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := artifactOf(ctx, kinds(), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want canceled", err)
	}
	if n := src.Unclosed(); n != 0 {
		t.Errorf("%d readers are open", n)
	}
}
