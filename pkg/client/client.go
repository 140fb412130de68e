package client

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/registry"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// client reaches places for one call of this package.
type client struct {
	opts     Options
	registry func() (*registry.Client, error) // made when it is first needed
	received atomic.Int64                     // bytes of blobs, links and URLs
}

func newClient(opts Options) *client {
	c := &client{opts: opts}
	c.registry = sync.OnceValues(func() (*registry.Client, error) {
		o := opts.Registry
		if o.Credential == nil {
			o.Credential = registry.DockerCredentials(opts.RegistryConfig).Credential
		}
		o.StateDir = cmp.Or(o.StateDir, opts.CacheDir)
		return registry.NewClient(o)
	})
	return c
}

// site is a place that keeps artifacts, and which artifact in it is meant.
type site struct {
	loc   location.Location
	store layout.Store
	repo  *registry.Repository // of location.KindRegistry, else nil
}

// site opens the place of an artifact. create accepts an image layout that is not
// there yet.
func (c *client) site(loc location.Location, create bool) (*site, error) {
	s := &site{loc: loc}
	switch loc.Kind {
	case location.KindTarget:
		s.store = layout.FromTarget(c.opts.Target)
	case location.KindRegistry:
		reg, err := c.registry()
		if err != nil {
			return nil, err
		}
		if s.repo, err = reg.Repository(loc.Registry, loc.Repository); err != nil {
			return nil, err
		}
		s.store = s.repo
	case location.KindLayout:
		open := layout.OpenDir
		if create {
			open = layout.CreateDir
		}
		dir, err := open(loc.Path)
		if err != nil {
			return nil, err
		}
		s.store = dir
	default:
		return nil, location.Errorf(loc.Redacted(), "got a carton, want a place in a registry or an image layout")
	}
	return s, nil
}

// origin returns the repository that blobs of the site can be mounted from.
func (s *site) origin() layout.Origin {
	if s.repo == nil {
		return layout.Origin{}
	}
	return layout.Origin{Registry: s.loc.Registry, Repository: s.loc.Repository}
}

// reader is a place that is read: it counts what arrives, and refuses every
// model but one before any blob is asked for.
type reader struct {
	layout.Fetcher
	received  *atomic.Int64
	modelHash string // "" is any

	raw    []byte // an image manifest that is here already, nil for none
	digest digest.Digest
}

// FetchManifest fetches an image manifest, and judges the model that it names.
func (r *reader) FetchManifest(ctx context.Context, desc ocispec.Descriptor) ([]byte, error) {
	raw, err := r.raw, error(nil)
	if raw == nil || desc.Digest != r.digest {
		raw, err = r.Fetcher.FetchManifest(ctx, desc)
	}
	if err != nil || r.modelHash == "" {
		return raw, err
	}
	m, err := layout.ParseManifest(raw)
	if err != nil {
		return nil, err
	}
	if got, ok := m.Annotations[convert.AnnotationModelHash]; ok {
		if err := wantModel(got, r.modelHash); err != nil {
			return nil, err
		}
	}
	return raw, nil
}

// OpenRange opens a range of a blob.
func (r *reader) OpenRange(ctx context.Context, desc ocispec.Descriptor, off, n int64) (io.ReadCloser, error) {
	body, err := r.Fetcher.OpenRange(ctx, desc, off, n)
	if err != nil {
		return nil, err
	}
	return &counted{body, r.received}, nil
}

type counted struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// wantModel compares model hashes.
func wantModel(got, want string) error {
	if want == "" || got == want {
		return nil
	}
	return &carton.Error{
		Path: carton.ManifestName, Kind: carton.ErrChecksum, Msg: fmt.Sprintf("got the model hash %.64q, want %s", got, want),
	}
}
