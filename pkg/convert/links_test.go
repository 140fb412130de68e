package convert

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/links"
)

// shop is a store that counts how often it is asked for a blob's size.
type shop struct {
	layout.Store // nothing but reading is asked of it
	shelf        *shelf
	stats        int
	err          error
}

func (s *shop) Stat(_ context.Context, dgst digest.Digest) (int64, error) {
	s.stats++
	b, ok := s.shelf.blobs[dgst]
	switch {
	case s.err != nil:
		return 0, s.err
	case !ok:
		return 0, layout.ErrNotFound
	}
	return int64(len(b)), nil
}

func (s *shop) OpenRange(ctx context.Context, desc ocispec.Descriptor, off, n int64) (io.ReadCloser, error) {
	return s.shelf.OpenRange(ctx, desc, off, n)
}

func TestLinkedContentComesFromTheStoreFirst(t *testing.T) {
	s := &shop{shelf: newShelf()}
	here := s.shelf.keep("x/y", []byte("here"))
	away := cartontest.Bytes(kindsContent("model/weights-1.bin"))
	f := StoreFetcher(s, fetched{sizes: true})
	for hash, want := range map[string]string{here.Digest.Encoded(): "here", away.Hash(): string(away)} {
		link := links.Link{Hash: hash, URL: "https://example.com/x"}
		for range 2 {
			size, err := f.Size(t.Context(), link)
			if err != nil || size != int64(len(want)) {
				t.Errorf("got the size %d, %v, want %d", size, err, len(want))
			}
			r, err := f.Open(t.Context(), link, 1, 2)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(r)
			r.Close()
			if err != nil || string(b) != want[1:3] {
				t.Errorf("got %q, %v, want %q", b, err, want[1:3])
			}
		}
	}
	if s.stats != 2 {
		t.Errorf("asked the store %d times about 2 hashes", s.stats)
	}
	r, err := f.Open(t.Context(), links.Link{Hash: here.Digest.Encoded()}, 2, 9)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r); string(b) != "re" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("past the end: got %q, %v", b, err)
	}
	r.Close()
}

func TestAStoreWithoutTheContent(t *testing.T) {
	link := links.Link{Hash: strings.Repeat("0", 64), URL: "https://example.com/x"}
	f := StoreFetcher(&shop{shelf: newShelf()}, nil)
	if _, err := f.Size(t.Context(), link); !errors.Is(err, carton.ErrLink) {
		t.Errorf("size: got %v, want ErrLink", err)
	}
	if _, err := f.Open(t.Context(), link, 0, -1); !errors.Is(err, carton.ErrLink) {
		t.Errorf("got %v, want ErrLink", err)
	}
	broken := errors.New("broken")
	f = StoreFetcher(&shop{shelf: newShelf(), err: broken}, fetched{})
	if _, err := f.Open(t.Context(), link, 0, -1); !errors.Is(err, broken) {
		t.Errorf("got %v, want the store's error", err)
	}
}

func TestThinLinks(t *testing.T) {
	files, symlinks := kindsOfMembers()
	files["misc/copy"] = files["model/config.json"] // fetched unverified if it were linked
	src := cartontest.New(files, symlinks)
	s, desc, _ := pushed(t, src, Options{BundleBelow: 12})
	links, err := ThinLinks(t.Context(), opened(t, s, desc, OpenOptions{}), func(d digest.Digest) string {
		return "https://r.example/v2/m/blobs/" + d.String()
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{}
	for _, path := range []string{"model/weights-1.bin", "model/weights-2.bin", "model/blobs/0123"} {
		hash := cartontest.Bytes(files[path]).Hash()
		want[hash] = []string{"https://r.example/v2/m/blobs/sha256:" + hash}
	}
	if diff := cmp.Diff(want, links.URLs); diff != "" {
		t.Error(diff)
	}
}

func TestNothingToLink(t *testing.T) {
	url := func(digest.Digest) string { return "https://example.com" }
	s, desc, _ := pushed(t, kinds(), Options{Layers: FormTar})
	_, err := ThinLinks(t.Context(), opened(t, s, desc, OpenOptions{}), url)
	if !errors.Is(err, carton.ErrLink) || len(hint.Of(err)) != 1 || !strings.Contains(hint.Of(err)[0].String(), "Layers raw") {
		t.Errorf("tar layers: got %v, %q, want ErrLink and what to do", err, hint.Of(err))
	}
	s, desc, _ = pushed(t, cartontest.New(nil, nil), Options{})
	if _, err := ThinLinks(t.Context(), opened(t, s, desc, OpenOptions{}), url); !errors.Is(err, carton.ErrLink) {
		t.Errorf("no model: got %v, want ErrLink", err)
	}
}

func TestOriginsOfLinkedLayers(t *testing.T) {
	thinLinks := linksOf("model/weights-1.bin", "model/weights-2.bin")
	one, two := cartontest.Bytes(kindsContent("model/weights-1.bin")).Hash(), cartontest.Bytes(kindsContent("model/weights-2.bin")).Hash()
	thinLinks.URLs[two] = []string{"http://r2.example/v2/m/blobs/sha256:" + two}
	thinLinks.URLs[one] = []string{
		"https://hub.example/model.bin",
		"https://r.example:5000/v2/org/m/blobs/sha256:" + one,
		"http://r2.example/v2/m/blobs/sha256:" + one,
		"https://r.example:5000/v2/org/m/blobs/sha256:" + one,
		"https://r3.example/v2/m/blobs/sha256:" + two,
		"https://user:pass@r4.example/v2/m/blobs/sha256:" + one,
		"https://r5.example/v2/m/blobs/sha256:" + one + "?x=y",
		"https://r6.example/v2//blobs/sha256:" + one,
		"ftp://r7.example/v2/m/blobs/sha256:" + one,
		"https://r8.example/m/blobs/sha256:" + one,
		"https:///v2/m/blobs/sha256:" + one,
		"https://%zz",
	}
	both := layout.Origin{Registry: "r2.example", Repository: "m"}
	a, err := artifactOf(t.Context(), links.Resolve(kinds(cartontest.WithLinks(thinLinks)), fetched{sizes: true}), Options{LinkOrigins: []layout.Origin{
		both,
		{Registry: "r.example:5000", Repository: "org/m"},
		{Registry: "r3.example", Repository: "m"},
		{Registry: "r4.example", Repository: "m"},
		{Registry: "r5.example", Repository: "m"},
		{Registry: "r6.example"},
		{Registry: "r7.example", Repository: "m"},
		{Registry: "r8.example", Repository: "m"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range a.Layers {
		want := []layout.Origin{both} // that has all that is linked is likely to have the rest
		if l.Digest.Encoded() == one {
			want = []layout.Origin{{Registry: "r.example:5000", Repository: "org/m"}, both}
		}
		if diff := cmp.Diff(want, l.Origins); diff != "" {
			t.Errorf("%s: %s", l.Name, diff)
		}
	}
}

func TestNoOrigins(t *testing.T) {
	for name, src := range map[string]carton.Source{
		"no links":        kinds(),
		"links elsewhere": links.Resolve(kinds(cartontest.WithLinks(linksOf("model/weights-1.bin"))), fetched{}),
	} {
		a, err := artifactOf(t.Context(), src, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range a.Layers {
			if l.Origins != nil {
				t.Errorf("%s: %s: got %v", name, l.Name, l.Origins)
			}
		}
	}
}

// An artifact that is copied is mounted from where it is, bundles too.
func TestOriginsOfAnArtifact(t *testing.T) {
	origin := layout.Origin{Registry: "r.example", Repository: "m"}
	for _, opts := range []Options{{}, {Layers: FormTar}} {
		s, desc, _ := pushed(t, kinds(), opts)
		src := opened(t, s, desc, OpenOptions{Origin: origin})
		a, err := artifactOf(t.Context(), src, opts)
		if err != nil {
			t.Fatal(err)
		}
		if a.Digest != desc.Digest {
			t.Error("the copy has another digest")
		}
		for _, l := range a.Layers {
			if diff := cmp.Diff([]layout.Origin{origin}, l.Origins); diff != "" {
				t.Errorf("%s: %s", l.Name, diff)
			}
		}
	}
}

func kindsContent(path string) []byte {
	files, _ := kindsOfMembers()
	return files[path]
}
