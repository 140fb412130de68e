package pack_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/carton-oci/carton-oci/internal/modeltest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/carton/sourcetest"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/pack"
)

// listed lists files; the hash of those is said that end in ".safetensors". What is
// read is counted.
func listed(files map[string]string, read *atomic.Int64) pack.Listing {
	l := pack.Listing{Repository: "org/m", Revision: strings.Repeat("c", 40)}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := files[name]
		x := pack.Listed{Path: name, Size: int64(len(text)), OpenRange: func(_ context.Context, off, n int64) (io.ReadCloser, error) {
			if read != nil {
				read.Add(n)
			}
			return io.NopCloser(strings.NewReader(text[off : off+n])), nil
		}}
		if strings.HasSuffix(name, ".safetensors") {
			sum := sha256.Sum256([]byte(text))
			x.Hash = hex.EncodeToString(sum[:])
		}
		l.Files = append(l.Files, x)
	}
	return l
}

// repository is one with weights of so many bytes.
func repository(t *testing.T, size int64) map[string]string {
	t.Helper()
	weights := modeltest.Safetensors(t, nil, modeltest.Tensor{Name: "t", DType: "U8", Shape: []int64{size}, Data: make([]byte, size)})
	return map[string]string{
		"model.safetensors": string(weights), "README.md": "---\nlicense: mit\n---\n# m\n", "config.json": "{}", "a/b/empty": "",
		".gitattributes": "*.bin filter=lfs\n", "runs/log.txt": "x", ".cartonignore": "runs\n",
	}
}

// What is on the hub is not cut: it would have to be read twice. What to do is said.
func TestAListingIsNotCut(t *testing.T) {
	opts := noop
	opts.Shard = 1 << 20
	var read atomic.Int64
	_, err := pack.OpenListing(t.Context(), listed(repository(t, 2<<20), &read), opts)
	if !errors.Is(err, pack.ErrOptions) || !strings.Contains(fmt.Sprint(hint.Of(err)), "hf download org/m --local-dir DIR") || read.Load() > 1<<20 {
		t.Errorf("got %v, %s, after %d bytes", err, hint.Of(err), read.Load())
	}
	opts.Shard = 4 << 20
	if _, err := pack.OpenListing(t.Context(), listed(repository(t, 2<<20), nil), opts); err != nil {
		t.Errorf("where nothing is as large: %v", err)
	}
}

func TestAListingIsTheCartonOfTheFolder(t *testing.T) {
	const weights = 4 << 20
	files := repository(t, weights)
	folder := open(t, noop, tree(t, files))
	var read atomic.Int64
	src, err := pack.OpenListing(t.Context(), listed(files, &read), noop)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if got, want := src.Manifest().ModelHash(), folder.Manifest().ModelHash(); got != want {
		t.Errorf("got the model hash %s, want %s", got, want)
	}
	if n := read.Load(); n > 100<<10 {
		t.Errorf("read %d bytes of weights of %d, want a header", n, weights)
	}
	if src.Info.License != "MIT" || src.Repository != "org/m" {
		t.Errorf("got licence %q, repository %q", src.Info.License, src.Repository)
	}
	if want := []string{".cartonignore", ".gitattributes", "runs/log.txt"}; !slices.Equal(src.LeftOut, want) {
		t.Errorf("left out are %q, want %q", src.LeftOut, want)
	}
}

// Include alone chooses nothing, as it would elsewhere, and that is said.
func TestIncludeAlone(t *testing.T) {
	files := repository(t, 100)
	for _, c := range []struct {
		exclude, include []string
		hinted           bool
		members          int
	}{
		{nil, []string{"*.safetensors"}, true, 6},
		{[]string{"*"}, []string{"*.safetensors"}, false, 3},
		{nil, []string{".gitattributes"}, false, 7},
	} {
		opts := noop
		opts.Include, opts.Exclude = c.include, c.exclude
		src, err := pack.OpenListing(t.Context(), listed(files, nil), opts)
		if err != nil {
			t.Fatal(err)
		}
		members, _ := src.Members(t.Context())
		if got := len(src.Hints) > 0; got != c.hinted || len(members) != c.members {
			t.Errorf("%q, %q: got the hints %q and %d members", c.exclude, c.include, src.Hints, len(members))
		}
		src.Close()
	}
}

func TestAListingKeepsThePromisesOfASource(t *testing.T) {
	files := repository(t, 1000)
	opened := func(l pack.Listing) *pack.Carton {
		src, err := pack.OpenListing(t.Context(), l, noop)
		if err != nil {
			t.Fatal(err)
		}
		return src
	}
	sourcetest.TestSource(t, func() carton.Source { return opened(listed(files, nil)) }, sourcetest.Options{
		Broken: func() (carton.Source, string) {
			l := listed(files, nil)
			for i := range l.Files {
				if x := &l.Files[i]; x.Hash != "" {
					x.Hash = strings.Repeat("ab", 32) // a list that lies
				}
			}
			return opened(l), "model/model.safetensors"
		},
	})
}

func TestAListingIsSeenAsItIs(t *testing.T) {
	src, err := pack.ViewListing(t.Context(), listed(repository(t, 100), nil), pack.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if b, err := carton.ReadMember(t.Context(), src, "model/config.json", 100); err != nil || string(b) != "{}" {
		t.Errorf("got %q, %v", b, err)
	}
}

// What a list may say that no folder can be.
func TestListingsThatAreRefused(t *testing.T) {
	for name, want := range map[string]error{
		"../config.json": carton.ErrInsecurePath, "/etc/passwd": carton.ErrInsecurePath, "a//b": carton.ErrInsecurePath,
		"a\\b": carton.ErrInsecurePath, "Config.json": carton.ErrInsecurePath, "config.json/x": carton.ErrInsecurePath, "a\nb": carton.ErrInsecurePath,
	} {
		files := map[string]string{"config.json": "{}", name: "x"}
		src, err := pack.OpenListing(t.Context(), listed(files, nil), noop)
		if err == nil {
			src.Close()
		}
		if !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", name, err, want)
		}
	}
	carton := map[string]string{"carton.toml": "", "MANIFEST": "", "model/a": ""}
	if _, err := pack.OpenListing(t.Context(), listed(carton, nil), noop); !errors.Is(err, pack.ErrCarton) {
		t.Errorf("a carton: got %v, want ErrCarton", err)
	}
}
