package client

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/carton-oci/carton-oci/internal/httprange"
	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/registry"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Client reaches registries, image layouts, web servers and files. It keeps
// connections, tokens and what it has learnt of each registry from call to call, and
// may be used by many goroutines at once.
type Client struct {
	opts      Options
	linkRepos []layout.Origin // those of AllowLinkRepos

	mu       sync.Mutex
	registry *registry.Client // made when it is first needed
	repos    map[layout.Origin]*registry.Repository
}

// New makes a client. Nothing is sent, and no file read, before a call needs it.
func New(opts Options) (*Client, error) {
	c := &Client{opts: opts, repos: map[layout.Origin]*registry.Repository{}}
	for _, text := range opts.AllowLinkRepos {
		ref, err := registry.ParseReference(text)
		if err != nil || ref.Target() != "" {
			return nil, location.Errorf(text, "can't be allowed to be linked to, want HOST/REPOSITORY")
		}
		c.linkRepos = append(c.linkRepos, layout.Origin{Registry: ref.Registry, Repository: ref.Repository})
	}
	for _, host := range opts.AllowLinkHosts {
		if err := httprange.CheckAllow(host); err != nil {
			return nil, location.Errorf(host, "can't be allowed to be linked to, want HOST or HOST:PORT")
		}
	}
	return c, nil
}

// Close closes the connections that nobody uses. The client can be used again.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.registry != nil {
		c.registry.Close()
	}
}

// registries returns the client for registries and web servers.
func (c *Client) registries() (*registry.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.registry != nil {
		return c.registry, nil
	}
	o := c.opts.Registry
	if o.Credential == nil {
		o.Credential = registry.DockerCredentials("").Credential
	}
	reg, err := registry.NewClient(o)
	c.registry = reg
	return reg, err
}

// repository opens a repository. Those of registries are opened once, because they
// keep tokens.
func (c *Client) repository(ctx context.Context, o layout.Origin) (layout.Store, error) {
	if c.opts.Repository != nil {
		return c.opts.Repository(ctx, o.Registry, o.Repository)
	}
	reg, err := c.registries()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	repo := c.repos[o]
	if repo == nil {
		if repo, err = reg.Repository(o.Registry, o.Repository); err != nil {
			return nil, err
		}
		c.repos[o] = repo
	}
	return repo, nil
}

// call is one call of a client's methods: its bytes are counted apart.
type call struct {
	*Client
	received atomic.Int64 // bytes of blobs, links and URLs
}

func (c *Client) call() *call { return &call{Client: c} }

// site is a place that keeps artifacts, and which artifact in it is meant.
type site struct {
	loc     location.Location
	store   layout.Store
	archive *layout.ArchiveWriter // the store, where that is one, else nil
}

// opening says what an artifact's place is opened for.
type opening int

const (
	reading   opening = iota
	writing           // an image layout need not be there yet, and an archive is a new one
	replacing         // an archive takes the place of one that is there
)

// site opens the place of an artifact.
func (c *Client) site(ctx context.Context, loc location.Location, to opening) (*site, error) {
	s := &site{loc: loc}
	var err error
	switch {
	case loc.Kind == location.KindRegistry:
		s.store, err = c.repository(ctx, s.origin())
	case loc.Kind == location.KindLayout && to != reading:
		s.store, err = layout.CreateDir(loc.Path)
	case loc.Kind == location.KindLayout:
		s.store, err = layout.OpenDir(loc.Path)
	case loc.Kind == location.KindArchive && to != reading:
		s.archive = layout.CreateArchive(loc.Path, to == replacing)
		s.store = s.archive
	case loc.Kind == location.KindArchive:
		s.store, err = layout.OpenArchive(loc.Path)
	default:
		err = loc.WantPlace()
	}
	return s, err
}

// origin returns the repository that blobs of the site can be mounted from, none for
// an image layout.
func (s *site) origin() layout.Origin {
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
	return counted(body, r.received), nil
}

// counted adds what is read to n.
func counted(r io.ReadCloser, n *atomic.Int64) io.ReadCloser {
	return &iox.Watched{ReadCloser: r, Saw: func(b []byte, err error) error { n.Add(int64(len(b))); return err }}
}

// wantModel compares model hashes.
func wantModel(got, want string) error {
	if want == "" || got == want {
		return nil
	}
	return &carton.Error{
		Path: carton.ManifestName, Kind: carton.ErrChecksum,
		Msg: fmt.Sprintf("got the model hash %.64q, want %s", got, want),
	}
}
