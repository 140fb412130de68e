package storetest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"sync"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/layout/storetest"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Memory is a layout.Store of one's own: it keeps everything in maps.
type Memory struct {
	mu        sync.Mutex
	blobs     map[digest.Digest][]byte
	manifests map[string]ocispec.Descriptor // by tag and by digest
}

func NewMemory() *Memory {
	return &Memory{blobs: map[digest.Digest][]byte{}, manifests: map[string]ocispec.Descriptor{}}
}

func (m *Memory) get(dgst digest.Digest) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.blobs[dgst]
	if !ok {
		return nil, fmt.Errorf("%s: %w", dgst, layout.ErrNotFound)
	}
	return b, nil
}

func (m *Memory) Resolve(_ context.Context, reference string) (ocispec.Descriptor, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	desc, ok := m.manifests[reference]
	if !ok {
		return desc, fmt.Errorf("%s: %w", reference, layout.ErrNotFound)
	}
	return desc, nil
}

func (m *Memory) ResolveManifest(ctx context.Context, reference string) (ocispec.Descriptor, []byte, error) {
	desc, err := m.Resolve(ctx, reference)
	if err != nil {
		return desc, nil, err
	}
	b, err := m.FetchManifest(ctx, desc)
	return desc, b, err
}

func (m *Memory) FetchManifest(ctx context.Context, desc ocispec.Descriptor) ([]byte, error) {
	return layout.ReadBlob(ctx, m, desc, layout.MaxManifestBytes)
}

func (m *Memory) OpenRange(_ context.Context, desc ocispec.Descriptor, off, n int64) (io.ReadCloser, error) {
	b, err := m.get(desc.Digest)
	if err != nil {
		return nil, err
	}
	if n < 0 {
		n = int64(len(b)) - off
	}
	if off < 0 || n < 0 || off > int64(len(b)) || n > int64(len(b))-off {
		return nil, io.ErrUnexpectedEOF
	}
	return io.NopCloser(bytes.NewReader(b[off : off+n])), nil
}

func (m *Memory) Stat(_ context.Context, dgst digest.Digest) (int64, error) {
	b, err := m.get(dgst)
	return int64(len(b)), err
}

func (m *Memory) Has(_ context.Context, desc ocispec.Descriptor, _ func(int64)) (bool, error) {
	b, err := m.get(desc.Digest)
	return err == nil && int64(len(b)) == desc.Size, nil
}

func (m *Memory) Local() bool                                           { return true }
func (m *Memory) BlobURL(digest.Digest) string                          { return "" }
func (m *Memory) CheckArtifact(context.Context, *layout.Artifact) error { return nil }
func (m *Memory) Mount(context.Context, ocispec.Descriptor, layout.Origin) (bool, error) {
	return false, nil
}

func (m *Memory) Push(ctx context.Context, l layout.Layer, w layout.Watch) error {
	if err := layout.CheckDescriptor(l.Descriptor); err != nil {
		return err
	}
	r, err := l.Open(ctx, 0)
	if err != nil {
		return err
	}
	v := layout.NewVerifier(r, l.Descriptor)
	defer v.Close()
	b, err := io.ReadAll(v)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	w = w.NonNil()
	w.Sent(l.Size)
	w.Moved(l.Size)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blobs[l.Digest] = b
	return nil
}

func (m *Memory) PushStream(context.Context, int64, layout.Opener, layout.Watch) (digest.Digest, error) {
	return "", layout.ErrNoStream
}

func (m *Memory) PutManifest(ctx context.Context, desc ocispec.Descriptor, content []byte, opts layout.PutOptions) error {
	if opts.NoClobber {
		if err := layout.CheckTags(ctx, m, desc.Digest, opts.Tags...); err != nil {
			return err
		}
	}
	open := func(_ context.Context, off int64) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content[off:])), nil
	}
	if err := m.Push(ctx, layout.Layer{Descriptor: desc, Open: open}, layout.Watch{}); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range append([]string{desc.Digest.String()}, opts.Tags...) {
		m.manifests[name] = desc
	}
	return nil
}

func (m *Memory) Tags(context.Context) iter.Seq2[string, error] {
	m.mu.Lock()
	defer m.mu.Unlock()
	var tags []string
	for name := range m.manifests {
		if layout.CheckDigest(digest.Digest(name)) != nil {
			tags = append(tags, name)
		}
	}
	return func(yield func(string, error) bool) {
		for _, tag := range tags {
			if !yield(tag, nil) {
				return
			}
		}
	}
}

func (m *Memory) Referrers(_ context.Context, subject ocispec.Descriptor, artifactType string) ([]ocispec.Descriptor, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := layout.ReferrerList{ArtifactType: artifactType}
	for _, desc := range m.manifests {
		if named, listed := layout.ReferrerOf(desc, m.blobs[desc.Digest]); named != nil && named.Digest == subject.Digest {
			if err := list.Add(listed); err != nil {
				return nil, err
			}
		}
	}
	return list.All, nil
}

func (m *Memory) Delete(ctx context.Context, reference string, opts layout.DeleteOptions) error {
	if isDigest := layout.CheckDigest(digest.Digest(reference)) == nil; isDigest && opts.KeepTagged {
		if err := layout.CheckUntagged(ctx, m, digest.Digest(reference)); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.manifests[reference]; !ok {
		return fmt.Errorf("%s: %w", reference, layout.ErrNotFound)
	}
	maps.DeleteFunc(m.manifests, func(name string, desc ocispec.Descriptor) bool {
		return name == reference || desc.Digest.String() == reference
	})
	return nil
}

// Logged is any store, and tells what is pushed to it. Whatever else the store
// promises, it keeps: nothing is asked of a store but its methods.
type Logged struct {
	layout.Store
	Log func(format string, args ...any)
}

func (l Logged) Push(ctx context.Context, layer layout.Layer, w layout.Watch) error {
	l.Log("push %s: %d bytes", layer.Digest, layer.Size)
	return l.Store.Push(ctx, layer, w)
}

func TestMemory(t *testing.T) {
	storetest.TestStore(t, func() layout.Store { return NewMemory() })
}

func TestLogged(t *testing.T) {
	storetest.TestStore(t, func() layout.Store { return Logged{Store: NewMemory(), Log: t.Logf} })
}
