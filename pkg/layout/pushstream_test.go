package layout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/pkg/progress"
)

// streaming is a Store that takes blobs without their digests, unless err says
// otherwise.
type streaming struct {
	Store
	err error
}

func (s *streaming) PushStream(ctx context.Context, _ int64, open Opener, w Watch) (digest.Digest, error) {
	if s.err != nil {
		return "", s.err
	}
	r, err := open(ctx, 0)
	if err != nil {
		return "", err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		return "", err
	}
	l := textLayer(string(b))
	return l.Digest, s.Push(ctx, l, w)
}

// unread is an artifact of one layer whose digest nobody knows.
func unread(size int64, open Opener) *Artifact {
	config := textLayer("{}")
	l := Layer{Descriptor: ocispec.Descriptor{MediaType: ocispec.MediaTypeImageLayer, Size: size}, Open: open}
	return &Artifact{Layers: []Layer{config, l}, Complete: func(learned []digest.Digest) (*Artifact, error) {
		if len(learned) != 1 {
			return nil, fmt.Errorf("got %q, want one digest", learned)
		}
		l.Digest = learned[0]
		return NewArtifact(ArtifactSpec{Config: config, Layers: []Layer{config, l, l}})
	}}
}

// textLayer is a layer of a text.
func textLayer(text string) Layer {
	return Layer{
		Descriptor: ocispec.Descriptor{MediaType: "text/plain", Digest: digest.FromString(text), Size: int64(len(text))},
		Open: func(_ context.Context, off int64) (io.ReadCloser, error) {
			return io.NopCloser(&textReader{text: text[off:]}), nil
		},
	}
}

// A layer whose digest nobody knows is read once where the store takes it so, and else
// once more to be stored. Nothing is published before it is known.
func TestPushLearnsDigests(t *testing.T) {
	const text = "some bytes"
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		stream *streaming // nil: a folder
		size   int64
		opens  int
		err    error
	}{
		"a store that can":               {&streaming{}, 10, 1, nil},
		"a store that can't after all":   {&streaming{err: ErrNoStream}, 10, 2, nil},
		"a store that fails":             {&streaming{err: broken}, 10, 0, broken},
		"a folder":                       {nil, 10, 2, nil},
		"a folder, and another size":     {nil, 11, 1, ErrDigest},
		"a folder, and yet another size": {nil, 9, 1, ErrDigest},
	} {
		dir, err := CreateDir(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		store := Store(dir)
		if c.stream != nil {
			c.stream.Store, store = dir, c.stream
		}
		opens := 0
		a := unread(c.size, func(ctx context.Context, off int64) (io.ReadCloser, error) {
			opens++
			return textLayer(text).Open(ctx, off)
		})
		got, err := Push(t.Context(), store, a, PushOptions{Tags: []string{"1"}, NoClobber: true})
		if !errors.Is(err, c.err) || opens != c.opens {
			t.Errorf("%s: got %v after %d reads, want %v after %d", name, err, opens, c.err, c.opens)
		}
		desc, resolved := dir.Resolve(t.Context(), "1")
		if c.err != nil {
			if !errors.Is(resolved, ErrNotFound) {
				t.Errorf("%s: the tag points to %v, %v", name, desc, resolved)
			}
			continue
		}
		if err == nil && (desc.Digest != got.Descriptor.Digest || got.Layers[1].Digest != digest.FromString(text) || got.Layers[2].Status != Uploaded) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// An archive is told first what it will hold, so what nobody knows is read before: the
// digests, and whether the source vouches for what is known.
func TestCompleteReadsAndStoresNothing(t *testing.T) {
	for size, wrong := range map[int64]error{10: nil, 11: ErrDigest} {
		a := unread(size, textLayer("some bytes").Open)
		vouched, told := 0, map[progress.State]int{}
		a.Layers[0].Vouch = func(_ context.Context, near Fetcher, _ func(int64)) error {
			if near != nil {
				t.Error("it is looked for in a store that there is none of")
			}
			vouched++
			return nil
		}
		got, err := Complete(t.Context(), a, PushOptions{Progress: func(e progress.Event) { told[e.State]++ }, Concurrency: 1})
		if !errors.Is(err, wrong) || vouched != 1 || told[progress.Moving] == 0 || told[progress.Exists] > 0 {
			t.Errorf("%d bytes: got %v, vouched for %d times, events %v", size, err, vouched, told)
		}
		if err != nil {
			continue
		}
		if got.Complete != nil || got.Layers[1].Digest != digest.FromString("some bytes") {
			t.Errorf("got %+v", got)
		}
		if again, err := Complete(t.Context(), got, PushOptions{}); err != nil || again != got {
			t.Errorf("what is complete: got %+v, %v", again, err)
		}
	}
}

// What an earlier push has brought is not asked for, nor read.
func TestPushAfterAnother(t *testing.T) {
	dir, err := CreateDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	first, err := NewArtifact(ArtifactSpec{Config: textLayer("{}"), Layers: []Layer{textLayer("one")}})
	if err != nil {
		t.Fatal(err)
	}
	pushed, err := Push(t.Context(), dir, first, PushOptions{})
	if err != nil {
		t.Fatal(err)
	}
	second, err := NewArtifact(ArtifactSpec{Config: textLayer("{}"), Layers: []Layer{textLayer("one"), textLayer("two")}})
	if err != nil {
		t.Fatal(err)
	}
	asked := &asks{Store: dir}
	again, err := Push(t.Context(), asked, second, PushOptions{After: pushed})
	if err != nil || len(asked.digests) != 1 || asked.digests[0] != digest.FromString("two") || again.Layers[0].Status != Exists {
		t.Errorf("got %+v, %v, and it asked for %q, want only what is new", again, err, asked.digests)
	}
}

// asks remembers which blobs it was asked for.
type asks struct {
	Store
	digests []digest.Digest
}

func (s *asks) Has(ctx context.Context, desc ocispec.Descriptor, moved func(off int64)) (bool, error) {
	s.digests = append(s.digests, desc.Digest)
	return s.Store.Has(ctx, desc, moved)
}

// textReader gives a byte at a time.
type textReader struct{ text string }

func (r *textReader) Read(b []byte) (int, error) {
	if r.text == "" {
		return 0, io.EOF
	}
	n := copy(b[:1], r.text)
	r.text = r.text[n:]
	return n, nil
}
