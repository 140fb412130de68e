package layout_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/carton-oci/carton-oci/internal/place"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/layout/storetest"
	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// archive writes the contents to a file.
func archive(ctx context.Context, name string, replace bool, contents ...layout.ArchiveContent) (there bool, err error) {
	w := layout.CreateArchive(name, replace)
	if there, err = w.Begin(ctx, contents); err == nil && !there {
		for _, c := range contents {
			if _, err = layout.Push(ctx, w, c.Artifact, layout.PushOptions{Tags: c.Tags}); err != nil {
				break
			}
		}
	}
	return there, w.End(err)
}

// What is in an archive decides every byte of it.
func TestArchiveBytesArePinned(t *testing.T) {
	one, two := storetest.Artifact(t, 1), storetest.Artifact(t, 2)
	name := filepath.Join(t.TempDir(), "m.oci.tar")
	contents := []layout.ArchiveContent{{one, []string{"v1", "latest"}}, {two, nil}}
	if there, err := archive(t.Context(), name, false, contents...); err != nil || there {
		t.Fatal(there, err)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	const want = "sha256:9847794025626f317edbd937f90d7d8d651c661c49484e4c21dc29f7429cca85"
	if got := digest.FromBytes(b); got != want {
		t.Errorf("got an archive of %s, want %s", got, want)
	}
	if got := files(t, filepath.Dir(name)); !cmp.Equal(got, []string{"m.oci.tar"}) {
		t.Errorf("left %q", got)
	}
	if fi, err := os.Stat(name); err != nil || fi.Mode() != 0o644 && runtime.GOOS != "windows" {
		t.Errorf("got mode %v, %v, want 0644", fi.Mode(), err)
	}
	read, err := layout.OpenArchive(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range contents {
		for _, ref := range append(c.Tags, string(c.Digest)) {
			if desc, err := read.Resolve(t.Context(), ref); err != nil || desc.Digest != c.Digest {
				t.Errorf("%s: got %v, %v", ref, desc, err)
			}
		}
		for _, l := range append(c.Layers, c.Config) {
			if there, err := read.Has(t.Context(), l.Descriptor, nil); !there || err != nil {
				t.Errorf("%s: got %v, %v", l.Digest, there, err)
			}
		}
	}
	// Again it is there already, and nothing else is taken for it.
	if there, err := archive(t.Context(), name, false, contents...); err != nil || !there {
		t.Errorf("the same again: got %v, %v", there, err)
	}
	for what, c := range map[string][]layout.ArchiveContent{
		"other tags":     {{one, []string{"v2"}}, {two, nil}},
		"less":           {{one, []string{"v1", "latest"}}},
		"another order":  {{two, nil}, {one, []string{"v1", "latest"}}},
		"other contents": {{storetest.Artifact(t, 3), []string{"v1", "latest"}}, {two, nil}},
	} {
		if _, err := archive(t.Context(), name, false, c...); !errors.Is(err, layout.ErrExist) || len(hint.Of(err)) != 1 {
			t.Errorf("%s: got %v, want ErrExist with a hint", what, err)
		}
	}
	for _, damage := range []func([]byte){
		func(b []byte) { b[len(b)/2] ^= 1 },
		func(b []byte) { b[len(b)-1] = 1 },
	} {
		other := bytes.Clone(b)
		damage(other)
		if err := os.WriteFile(name, other, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := archive(t.Context(), name, false, contents...); !errors.Is(err, layout.ErrExist) {
			t.Errorf("damaged: got %v, want ErrExist", err)
		}
		if now, _ := os.ReadFile(name); !bytes.Equal(now, other) {
			t.Error("damaged: it has changed")
		}
	}
	if _, err := archive(t.Context(), name, true, contents...); err != nil {
		t.Error(err)
	}
	if now, _ := os.ReadFile(name); !bytes.Equal(now, b) {
		t.Error("replaced: it has other bytes")
	}
}

// counting counts what is read of a layer.
func counting(l layout.Layer, b []byte, ranged bool, n *atomic.Int64, fail func(off int64) error) layout.Layer {
	open := func(off, size int64) (io.ReadCloser, error) {
		if err := fail(off); err != nil {
			return nil, err
		}
		return io.NopCloser(&countedReader{bytes.NewReader(b[off : off+size]), n}), nil
	}
	l.Open = func(_ context.Context, off int64) (io.ReadCloser, error) { return open(off, int64(len(b))-off) }
	if ranged {
		l.OpenRange = func(_ context.Context, off, size int64) (io.ReadCloser, error) { return open(off, size) }
	}
	return l
}

type countedReader struct {
	io.Reader
	n *atomic.Int64
}

func (r *countedReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.n.Add(int64(n))
	return n, err
}

// What breaks off is gone on with, also under other tags and beside other manifests
// of the same blobs; and until it is whole there is no archive.
func TestAnArchiveThatBrokeOffIsGoneOnWith(t *testing.T) {
	large, largeDesc := storetest.Blob(7, 40<<20)
	down := errors.New("the host is down")
	for _, ranged := range []bool{true, false} {
		name := filepath.Join(t.TempDir(), "m.oci.tar")
		var read atomic.Int64
		with := func(fail func(off int64) error) *layout.Artifact {
			a := storetest.Artifact(t, 1)
			layers := slices.Concat(a.Layers, []layout.Layer{counting(layout.Layer{Descriptor: largeDesc}, large, ranged, &read, fail)})
			a, err := layout.NewArtifact(layout.ArtifactSpec{ArtifactType: "application/vnd.example.v1", Config: a.Config, Layers: layers})
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		broken := with(func(off int64) error {
			if off >= 32<<20 {
				return down
			}
			return nil
		})
		if !ranged {
			l := &broken.Layers[len(broken.Layers)-1]
			l.Open = func(context.Context, int64) (io.ReadCloser, error) {
				return io.NopCloser(io.MultiReader(bytes.NewReader(large[:35<<20]), iotest.ErrReader(down))), nil
			}
		}
		_, err := archive(t.Context(), name, false, layout.ArchiveContent{Artifact: broken, Tags: []string{"v1"}})
		if !errors.Is(err, down) || !strings.Contains(fmt.Sprint(hint.Of(err)), "m.oci.tar.partial") {
			t.Fatalf("got %v with the hints %q", err, hint.Of(err))
		}
		if _, err := os.Stat(name); err == nil {
			t.Error("there is half an archive")
		}
		if _, err := layout.OpenArchive(name + ".partial"); !errors.Is(err, layout.ErrFormat) {
			t.Errorf("the partial: got %v, want ErrFormat", err)
		}
		read.Store(0)
		whole := with(func(int64) error { return nil })
		if _, err := archive(t.Context(), name, false, layout.ArchiveContent{Artifact: whole, Tags: []string{"a-much-longer-tag"}}); err != nil {
			t.Fatal(err)
		}
		if n := read.Load(); ranged && n > 30<<20 || !ranged && n != 40<<20 { // a stream begins anew
			t.Errorf("ranged %v: %d bytes came once more", ranged, n)
		}
		again := filepath.Join(t.TempDir(), "again.oci.tar")
		if _, err := archive(t.Context(), again, false, layout.ArchiveContent{Artifact: whole, Tags: []string{"a-much-longer-tag"}}); err != nil {
			t.Fatal(err)
		}
		one, _ := os.ReadFile(name)
		two, _ := os.ReadFile(again)
		if !bytes.Equal(one, two) {
			t.Errorf("ranged %v: what was gone on with has other bytes", ranged)
		}
		if got := files(t, filepath.Dir(name)); !cmp.Equal(got, []string{"m.oci.tar"}) {
			t.Errorf("left %q", got)
		}
	}
}

// What an earlier run left of an archive with other manifests does not show: neither in
// the bytes behind a manifest that is shorter, nor as an error where they move the blobs.
func TestAnArchiveBesideOtherManifests(t *testing.T) {
	large, largeDesc := storetest.Blob(7, 4<<20)
	down := errors.New("the host is down")
	with := func(text string, fail error) *layout.Artifact {
		a := storetest.Artifact(t, 1)
		l := counting(layout.Layer{Descriptor: largeDesc}, large, true, new(atomic.Int64), func(off int64) error {
			if off >= 2<<20 {
				return fail
			}
			return nil
		})
		a, err := layout.NewArtifact(layout.ArtifactSpec{
			ArtifactType: "application/vnd.example.v1", Config: a.Config, Layers: []layout.Layer{l}, Annotations: map[string]string{"text": text},
		})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	whole := with("short", nil)
	fresh := filepath.Join(t.TempDir(), "fresh.oci.tar")
	if _, err := archive(t.Context(), fresh, false, layout.ArchiveContent{Artifact: whole, Tags: []string{"v1"}}); err != nil {
		t.Fatal(err)
	}
	want, _ := os.ReadFile(fresh)
	for n := range 24 { // some of them lie where the other one does, some move what lies behind them
		name := filepath.Join(t.TempDir(), "m.oci.tar")
		broken := with(strings.Repeat("x", 8*n), down)
		w := layout.CreateArchive(name, false)
		if _, err := w.Begin(t.Context(), []layout.ArchiveContent{{Artifact: broken, Tags: []string{"v1"}}}); err != nil {
			t.Fatal(err)
		}
		if err := w.PutManifest(t.Context(), broken.Descriptor, broken.Manifest, layout.PutOptions{}); err != nil {
			t.Fatal(err)
		}
		_, err := layout.Push(t.Context(), w, broken, layout.PushOptions{})
		if err := w.End(err); !errors.Is(err, down) {
			t.Fatalf("got %v", err)
		}
		if _, err := archive(t.Context(), name, false, layout.ArchiveContent{Artifact: whole, Tags: []string{"v1"}}); err != nil {
			t.Fatalf("%d: %v", n, err)
		}
		if got, _ := os.ReadFile(name); !bytes.Equal(got, want) {
			t.Errorf("%d: the archive has other bytes than one that was made at once", n)
		}
	}
}

// Content that is not what its digest says makes no archive.
func TestAnArchiveOfWrongContent(t *testing.T) {
	name := filepath.Join(t.TempDir(), "m.oci.tar")
	a := storetest.Artifact(t, 1)
	_, desc := storetest.Blob(1, 1000)
	other, _ := storetest.Blob(2, 1000)
	a.Layers = append(a.Layers, storetest.Layer(desc, other))
	if _, err := archive(t.Context(), name, false, layout.ArchiveContent{Artifact: a}); !errors.Is(err, layout.ErrDigest) {
		t.Errorf("got %v, want ErrDigest", err)
	}
	if got := files(t, filepath.Dir(name)); got != nil {
		t.Errorf("left %q", got)
	}
}

// What is not pushed, or was not planned, makes no archive either.
func TestAnArchiveIsWhatWasPlanned(t *testing.T) {
	name := filepath.Join(t.TempDir(), "m.oci.tar")
	one, two := storetest.Artifact(t, 1), storetest.Artifact(t, 2)
	w := layout.CreateArchive(name, false)
	if _, err := layout.Push(t.Context(), w, one, layout.PushOptions{}); !errors.Is(err, layout.ErrUnsupported) {
		t.Errorf("before it was begun: got %v, want ErrUnsupported", err)
	}
	if _, err := w.Begin(t.Context(), []layout.ArchiveContent{{one, nil}}); err != nil {
		t.Fatal(err)
	}
	if _, err := layout.Push(t.Context(), w, two, layout.PushOptions{}); !errors.Is(err, layout.ErrUnsupported) {
		t.Errorf("what was not planned: got %v, want ErrUnsupported", err)
	}
	if err := w.PutManifest(t.Context(), two.Descriptor, two.Manifest, layout.PutOptions{}); !errors.Is(err, layout.ErrUnsupported) {
		t.Errorf("a manifest that was not planned: got %v, want ErrUnsupported", err)
	}
	if err := w.End(nil); !errors.Is(err, layout.ErrNotFound) {
		t.Errorf("what was not pushed: got %v, want ErrNotFound", err)
	}
	unknown := storetest.Artifact(t, 1)
	unknown.Complete = func([]digest.Digest) (*layout.Artifact, error) { return one, nil }
	if _, err := archive(t.Context(), name, false, layout.ArchiveContent{Artifact: unknown}); !errors.Is(err, layout.ErrUnsupported) {
		t.Errorf("digests that nobody knows: got %v, want ErrUnsupported", err)
	}
	sized := storetest.Artifact(t, 1)
	sized.Layers[0].Size++
	if _, err := archive(t.Context(), name, false, layout.ArchiveContent{Artifact: sized}, layout.ArchiveContent{Artifact: one}); !errors.Is(err, layout.ErrFormat) {
		t.Errorf("a blob of two sizes: got %v, want ErrFormat", err)
	}
	if got := files(t, filepath.Dir(name)); got != nil {
		t.Errorf("left %q", got)
	}
}

// One process writes an archive at a time, and it goes where an output can.
func TestWhereAnArchiveGoes(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "m.oci.tar")
	contents := []layout.ArchiveContent{{storetest.Artifact(t, 1), []string{"v1"}}}
	w := layout.CreateArchive(name, false)
	if _, err := w.Begin(t.Context(), contents); err != nil {
		t.Fatal(err)
	}
	if _, err := archive(t.Context(), name, false, contents...); !errors.Is(err, place.ErrBusy) {
		t.Errorf("two at once: got %v, want ErrBusy", err)
	}
	stop := errors.New("stop")
	if err := w.End(stop); !errors.Is(err, stop) {
		t.Error(err)
	}
	if _, err := archive(t.Context(), filepath.Join(dir, "missing", "m.oci.tar"), false, contents...); err == nil || !strings.Contains(fmt.Sprint(hint.Of(err)), "mkdir -p") {
		t.Errorf("a folder that is missing: got %v, %q", err, hint.Of(err))
	}
	t.Run("a symlink", func(t *testing.T) {
		link := filepath.Join(dir, "link.oci.tar")
		testenv.Symlink(t, "m.oci.tar", link)
		for _, replace := range []bool{false, true} { // what it leads to is not touched, and neither is it
			if _, err := archive(t.Context(), link, replace, contents...); err == nil || strings.Contains(fmt.Sprint(hint.Of(err)), "force") {
				t.Errorf("got %v, %q", err, hint.Of(err))
			}
		}
	})
	if err := os.Mkdir(name, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, replace := range []bool{false, true} {
		if _, err := archive(t.Context(), name, replace, contents...); !errors.Is(err, layout.ErrExist) {
			t.Errorf("a folder in its place: got %v, want ErrExist", err)
		} else if strings.Contains(fmt.Sprint(hint.Of(err)), "force") {
			t.Errorf("a folder in its place: %q", hint.Of(err))
		}
	}
}

// An index goes into an archive as it is, beside what it lists.
func TestAnIndexInAnArchive(t *testing.T) {
	one := storetest.Artifact(t, 1)
	raw := []byte(fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"manifests":[{"mediaType":%q,"digest":%q,"size":%d}]}`,
		ocispec.MediaTypeImageIndex, one.MediaType, one.Digest, one.Size))
	index := &layout.Artifact{
		Descriptor: ocispec.Descriptor{MediaType: ocispec.MediaTypeImageIndex, Digest: digest.FromBytes(raw), Size: int64(len(raw))}, Manifest: raw,
	}
	name := filepath.Join(t.TempDir(), "m.oci.tar")
	if _, err := archive(t.Context(), name, false, layout.ArchiveContent{Artifact: one}, layout.ArchiveContent{Artifact: index, Tags: []string{"v1"}}); err != nil {
		t.Fatal(err)
	}
	read, err := layout.OpenArchive(name)
	if err != nil {
		t.Fatal(err)
	}
	if desc, got, err := read.ResolveManifest(t.Context(), "v1"); err != nil || desc.MediaType != ocispec.MediaTypeImageIndex || !bytes.Equal(got, raw) {
		t.Errorf("got %v, %s, %v", desc, got, err)
	}
}
