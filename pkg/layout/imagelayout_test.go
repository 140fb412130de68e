package layout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// counted is an image layout in memory that counts how often manifests are read.
type counted struct {
	imageLayout
	index     *indexFile
	manifests map[digest.Digest][]byte
	refs      subjects
	reads     int
}

func (c *counted) Path() string              { return "layout" }
func (c *counted) open() (*indexFile, error) { return c.index, nil }
func (c *counted) subjects() *subjects       { return &c.refs }

func (c *counted) FetchManifest(_ context.Context, desc ocispec.Descriptor) ([]byte, error) {
	c.reads++
	return c.manifests[desc.Digest], nil
}

func (c *counted) add(subject digest.Digest, text string, times int) ocispec.Descriptor {
	m := map[string]any{"schemaVersion": 2, "annotations": map[string]string{"text": text}}
	if subject != "" {
		m["subject"] = map[string]any{"digest": subject}
	}
	b, _ := json.Marshal(m)
	desc := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromBytes(b), Size: int64(len(b))}
	c.manifests[desc.Digest] = b
	for range times {
		c.index.Manifests = append(c.index.Manifests, indexEntry{Descriptor: desc})
	}
	return desc
}

// A stranger's index.json may list a manifest of 4 MiB twenty thousand times, and what
// refers to one after another of a thousand: each is read once, and an interrupt ends it.
func TestReferrersOfALayoutAreReadOnce(t *testing.T) {
	c := &counted{index: &indexFile{}, manifests: map[digest.Digest][]byte{}}
	subject := digest.FromString("subject")
	first := c.add(subject, "first", 2)
	for i := range 50 {
		c.add("", fmt.Sprint(i), 40)
	}
	for _, of := range []digest.Digest{subject, first.Digest, digest.FromString("other"), subject} {
		got, err := referrersIn(t.Context(), c, ocispec.Descriptor{Digest: of}, "")
		if want := map[bool]int{true: 1, false: 0}[of == subject]; err != nil || len(got) != want {
			t.Errorf("referrers of %s: got %v, %v, want %d", of, got, err, want)
		}
	}
	if c.reads > 53 { // the one that is a referrer is read again where it is asked for
		t.Errorf("51 manifests were read %d times", c.reads)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := referrersIn(ctx, c, ocispec.Descriptor{Digest: subject}, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: got %v", err)
	}
	if _, err := onlyIn(ctx, c, c.index); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: got %v", err)
	}
}
