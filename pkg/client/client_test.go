package client

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/registry"
	"golang.org/x/sync/errgroup"
	"oras.land/oras-go/v2/registry/remote/auth"
)

// A client asks for a token once, however often it is used, and at once.
func TestAClientKeepsTokens(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{Auth: registrytest.Auth{Users: map[string]string{"ann": "secret"}, Bearer: true}})
	var asked atomic.Int64
	c := fresh(Options{Registry: registry.Options{
		Credential: func(context.Context, string) (auth.Credential, error) {
			asked.Add(1)
			return auth.Credential{Username: "ann", Password: "secret"}, nil
		},
	}})
	defer c.Close()
	ref := r.Host + "/m:1"
	pushed, err := c.PushSource(t.Context(), sample(), "sample", ref, PushOptions{})
	if err != nil {
		t.Fatal(err)
	}
	before := asked.Load()
	dir := t.TempDir()
	var group errgroup.Group
	for _, name := range []string{"a", "b", "c"} {
		group.Go(func() error {
			result, err := c.Pull(t.Context(), ref, PullOptions{Output: filepath.Join(dir, name)})
			if err == nil && result.BytesDownloaded != pushed.Bytes()+1 { // the twins are read once each
				t.Errorf("got %d bytes, want this pull's own, %d", result.BytesDownloaded, pushed.Bytes()+1)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if asked.Load() != before {
		t.Errorf("credentials were asked for %d times more", asked.Load()-before)
	}
}

// A store of the caller's own is one everywhere: what is pushed to, copied from,
// made an image of, linked into and mounted from.
func TestAStoreOfOnesOwnIsTakenEverywhere(t *testing.T) {
	dir := t.TempDir()
	c := fresh(Options{
		AllowLinkRepos: []string{"h.io/a"},
		Repository: func(_ context.Context, registry, repository string) (layout.Store, error) {
			if registry != "h.io" {
				return nil, layout.ErrNotFound
			}
			return layout.CreateDir(filepath.Join(dir, repository))
		},
	})
	pushed, err := c.PushSource(t.Context(), sample(), "sample", "h.io/a:1", PushOptions{Mapping: convert.Options{Layers: convert.FormTar}})
	if err != nil || pushed.Reference != "h.io/a:1" {
		t.Fatalf("got %+v, %v", pushed, err)
	}
	copied, err := c.Copy(t.Context(), "h.io/a:1", "h.io/b:2", CopyOptions{})
	if err != nil || copied.Digest != pushed.Digest || copied.Reference != "h.io/b:2" || copied.Source.Reference != "h.io/a:1" {
		t.Errorf("copy: got %+v, %v", copied, err)
	}
	if desc, err := c.Resolve(t.Context(), "h.io/b:2"); err != nil || desc.Digest != pushed.Digest {
		t.Errorf("resolve: got %v, %v", desc, err)
	}
	if image, err := c.Image(t.Context(), "h.io/b:2", ImageOptions{}); err != nil || image.Reference != "h.io/b:2-image" {
		t.Errorf("image: got %+v, %v", image, err)
	}
	t.Chdir(t.TempDir())
	if result, err := c.Pull(t.Context(), "h.io/b:2", PullOptions{}); err != nil || result.Path != "b-2.carton" {
		t.Errorf("pull: got %+v, %v", result, err)
	}
	raw, err := c.PushSource(t.Context(), sample(), "sample", "h.io/a:raw", PushOptions{})
	if err != nil {
		t.Fatal(err)
	}
	member := raw.Layers[2].Digest
	links := &carton.Links{URLs: map[string][]string{member.Encoded(): {"https://h.io/v2/a/blobs/" + member.String()}}}
	if err := carton.Assemble(t.Context(), "thin.carton", sample(), carton.AssembleOptions{Thin: links}); err != nil {
		t.Fatal(err)
	}
	if whole, err := c.Push(t.Context(), "thin.carton", "h.io/b:raw", PushOptions{}); err != nil || whole.Digest != raw.Digest {
		t.Errorf("push of a thin carton: got %+v, %v", whole, err)
	}
	if _, err := c.Pull(t.Context(), "other.io/m:1", PullOptions{}); !errors.Is(err, layout.ErrNotFound) {
		t.Errorf("got %v, want the function's error", err)
	}
}

func TestWhatIsNoCopy(t *testing.T) {
	c := fresh(within(inMemory()))
	for source, opts := range map[string]CopyOptions{
		"./m.carton":  {},
		"https://h/m": {},
		"h.io/m:1":    {ImageTag: "x"},
	} {
		if _, err := c.Copy(t.Context(), source, "h.io/m:2", opts); err == nil || errors.Is(err, layout.ErrNotFound) {
			t.Errorf("%s: got %v, want a refusal", source, err)
		}
	}
}

func TestOptionsOfAPushThatContradictEachOther(t *testing.T) {
	c := fresh(within(inMemory()))
	for want, opts := range map[string]PushOptions{
		"one to leave":     {LeaveImage: true, Mapping: convert.Options{Image: true}},
		"got a tag for":    {ImageTag: "x"},
		"got a subject":    {Mapping: convert.Options{ImageSubject: true}},
		"goes without Ima": {Mapping: convert.Options{ImageSubject: true, Compat: convert.CompatImage}},
	} {
		if _, err := c.PushSource(t.Context(), sample(), "m", "h.io/m:1", opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A client that nobody can reach a registry with reads what is on this machine.
func TestWhatIsHereNeedsNoRegistry(t *testing.T) {
	c := fresh(Options{Registry: registry.Options{CAFile: "/nowhere"}})
	if _, err := c.Push(t.Context(), "oci:nowhere:1", "oci:"+t.TempDir()+"/l:1", PushOptions{}); err == nil || strings.Contains(err.Error(), "authorities") {
		t.Errorf("got %v", err)
	}
	if _, err := c.Resolve(t.Context(), "h.io/m:1"); err == nil || !strings.Contains(err.Error(), "authorities") {
		t.Errorf("got %v, want that the file of authorities is missing", err)
	}
	if _, err := c.Resolve(t.Context(), "./m"); !errors.Is(err, location.ErrLocation) {
		t.Errorf("got %v, want ErrLocation", err)
	}
}
