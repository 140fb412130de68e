package layout_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/layout/storetest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/content/oci"
)

// Two layers of one content and two media types: oras-go's memory store knows
// them apart, and whoever reads it by descriptor finds both.
func TestTargetHoldsABlobUnderEveryMediaType(t *testing.T) {
	m := memory.New()
	one, two := blobLayer("a", []byte("same")), blobLayer("b", []byte("same"))
	two.MediaType = "application/vnd.example.other"
	a := artifact(t, layout.ArtifactSpec{Config: configLayer(), Layers: []layout.Layer{one, two}})
	s := layout.FromTarget(m)
	result, err := layout.Push(t.Context(), s, a, layout.PushOptions{Tags: []string{"v1"}})
	if err != nil {
		t.Fatal(err)
	}
	if result.BytesUploaded != 2+4 {
		t.Errorf("uploaded %d bytes, want the content once", result.BytesUploaded)
	}
	for _, l := range a.Layers {
		if ok, err := m.Exists(t.Context(), l.Descriptor); !ok || err != nil {
			t.Errorf("%s: got %v, %v", l.MediaType, ok, err)
		}
	}
	// A reader of its own, that has pushed nothing, reads it too.
	if _, err := layout.ReadBlob(t.Context(), layout.FromTarget(m), two.Descriptor, 10); err != nil {
		t.Error(err)
	}
}

func TestTargetFindsWhatOthersPushed(t *testing.T) {
	b, desc := storetest.Blob(1, 1000)
	for name, target := range map[string]layout.Target{"memory": memory.New(), "oci": orasDir(t)} {
		if err := target.Push(t.Context(), desc, bytes.NewReader(b)); err != nil {
			t.Fatal(err)
		}
		s := layout.FromTarget(target)
		opened := false
		err := s.Push(t.Context(), layout.Layer{Descriptor: desc, Open: func(context.Context, int64) (io.ReadCloser, error) {
			opened = true
			return nil, io.ErrClosedPipe
		}}, layout.Watch{})
		if err != nil || opened {
			t.Errorf("%s: pushes what is there: %v", name, err)
		}
		if n, err := s.Stat(t.Context(), desc.Digest); err != nil || n != desc.Size {
			t.Errorf("%s: got %d, %v, want %d", name, n, err, desc.Size)
		}
	}
	// By digest alone only where the target can.
	for name, target := range map[string]layout.Target{"memory": memory.New(), "oci": orasDir(t)} {
		if err := target.Push(t.Context(), desc, bytes.NewReader(b)); err != nil {
			t.Fatal(err)
		}
		n, err := layout.FromTarget(target).Stat(t.Context(), desc.Digest)
		if found := err == nil && n == desc.Size; found != (name == "oci") || (!found && !errors.Is(err, layout.ErrNotFound)) {
			t.Errorf("%s: got %d, %v", name, n, err)
		}
	}
}

func orasDir(t *testing.T) *oci.Store {
	t.Helper()
	s, err := oci.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// eager is a target that stops reading at the last byte and believes it.
type eager struct{ layout.Target }

func (e eager) Push(ctx context.Context, desc ocispec.Descriptor, r io.Reader) error {
	b := make([]byte, desc.Size)
	if _, err := io.ReadFull(r, b); err != nil {
		return errors.New("something went wrong")
	}
	return e.Target.Push(ctx, desc, bytes.NewReader(b))
}

func TestTargetThatReadsNoFurtherThanTheLastByte(t *testing.T) {
	b, desc := storetest.Blob(1, 1000)
	s := layout.FromTarget(eager{memory.New()})
	for name, other := range map[string][]byte{"longer": append(bytes.Clone(b), 0), "shorter": b[1:]} {
		err := s.Push(t.Context(), storetest.Layer(desc, other), layout.Watch{})
		if !errors.Is(err, layout.ErrDigest) {
			t.Errorf("%s: got %v, want ErrDigest", name, err)
		}
	}
	if _, err := s.Stat(t.Context(), desc.Digest); !errors.Is(err, layout.ErrNotFound) {
		t.Errorf("is there: %v", err)
	}
	if err := s.Push(t.Context(), layout.Layer{Descriptor: desc, Open: opens(b)}, layout.Watch{}); err != nil {
		t.Error(err)
	}
}

// lying is a target whose blobs are longer than it says.
type lying struct{ layout.Target }

func (l lying) Fetch(ctx context.Context, desc ocispec.Descriptor) (io.ReadCloser, error) {
	r, err := l.Target.Fetch(ctx, desc)
	if err != nil {
		return nil, err
	}
	return nopCloser{io.MultiReader(r, bytes.NewReader([]byte("more")))}, nil
}

func TestTargetIsNotBelieved(t *testing.T) {
	b, desc := storetest.Blob(1, 1000)
	m := memory.New()
	if err := m.Push(t.Context(), desc, bytes.NewReader(b)); err != nil {
		t.Fatal(err)
	}
	s := layout.FromTarget(lying{m})
	if _, err := layout.ReadBlob(t.Context(), s, desc, 1000); !errors.Is(err, layout.ErrDigest) {
		t.Errorf("got %v, want ErrDigest", err)
	}
	desc = descOf(ocispec.MediaTypeImageManifest, []byte(good))
	if err := m.Push(t.Context(), desc, strings.NewReader(good)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.FetchManifest(t.Context(), desc); !errors.Is(err, layout.ErrDigest) {
		t.Errorf("got %v, want ErrDigest", err)
	}
}
