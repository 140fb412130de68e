package convert

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// Source is an artifact as a carton. [Open] makes one.
//
// What it reads of an artifact of this mapping: the image manifest, then MANIFEST,
// and carton.toml with it where both are small raw layers; the bundles of symlinks
// (headers only) when members are first asked for; content as it is opened. Members
// of one tar layer that are opened one after another, in the order of Members, come
// from one request, each byte once.
type Source struct {
	fetcher       *prefetcher
	opts          OpenOptions
	desc          ocispec.Descriptor
	raw           []byte
	imageManifest *ocispec.Manifest // as it was read
	manifest      *ocispec.Manifest // without layers that are no member's
	layers        []sourceLayer

	manifestLayer int // the layer that holds MANIFEST
	carton        *carton.Manifest
	regenerated   bool
	plain         bool              // it is no carton, and was opened as it is
	generated     map[string][]byte // members that no layer holds
	streams       streams
	life          context.Context //nolint:containedctx // ends when the source is closed
	end           context.CancelFunc

	mu           sync.Mutex
	places       map[string]*place // of members, by path; all of them once members is there
	manifestSeen bool
	unscanned    []int           // the tar layers that are read when members are asked for
	members      []carton.Member // sorted; nil while layers are pending
	broken       error           // what is wrong with the members
}

// place says where a member's bytes are.
type place struct {
	layer int // -1: generated
	size  int64
	link  string // a symlink's target, as the artifact has it

	unhashed bool         // in a tar layer, of a plain artifact: nobody has read it for its hash
	off      int64        // in a tar layer: where the content begins
	tar      *expectedTar // what the tar's bytes must be, nil where they were read already
	gap      int64        // with tar: where the bytes begin that nobody else checks
	last     bool         // with tar: no member follows
}

func newSource(f layout.Fetcher, desc ocispec.Descriptor, opts OpenOptions) *Source {
	fetcher := &prefetcher{Fetcher: f, blobs: map[digest.Digest]*prefetched{}}
	s := &Source{fetcher: fetcher, desc: desc, opts: opts, places: map[string]*place{}}
	s.life, s.end = context.WithCancel(context.Background())
	s.streams.open = s.openTar
	s.streams.seekable = func(layer int) bool { return s.layers[layer].format == formatTar }
	return s
}

// Descriptor returns the image manifest's descriptor.
func (s *Source) Descriptor() ocispec.Descriptor { return s.desc }

// TarLayers returns the layers that are tars of members. Other programs unpack
// them without asking MANIFEST.
func (s *Source) TarLayers() []ocispec.Descriptor {
	var tars []ocispec.Descriptor
	for i, d := range s.manifest.Layers {
		if s.layers[i].format != formatRaw {
			tars = append(tars, d)
		}
	}
	return tars
}

// Regenerated reports whether the artifact holds no MANIFEST, so that the one
// here was made from its content: its model hash is not its author's.
func (s *Source) Regenerated() bool { return s.regenerated }

// Config reads the artifact's config: one request.
func (s *Source) Config(ctx context.Context) (*ModelConfig, error) {
	b, err := layout.ReadBlob(ctx, s.fetcher, s.manifest.Config, layout.MaxConfigBytes)
	if err != nil {
		return nil, err
	}
	return ParseModelConfig(b)
}

// Manifest returns MANIFEST.
func (s *Source) Manifest() *carton.Manifest { return s.carton }

// Links returns nil: an artifact holds no LINKS.
func (s *Source) Links() *carton.Links { return nil }

// Members returns the members. The first call reads the tar layers whose
// members no annotation lists.
func (s *Source) Members(ctx context.Context) ([]carton.Member, error) {
	if err := s.scanTars(ctx); err != nil {
		return nil, err
	}
	return slices.Clone(s.members), nil
}

// Open opens a member, verified.
func (s *Source) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	if name == carton.ManifestName {
		return io.NopCloser(s.carton.NewReader()), nil
	}
	e, p, err := s.find(ctx, name)
	if err != nil {
		return nil, err
	}
	if p.layer < 0 {
		return io.NopCloser(bytes.NewReader(s.generated[e.Path])), nil
	}
	if p.unhashed {
		r, err := s.openUnhashed(ctx, e.Path, p)
		return r, memberError(name, err)
	}
	var r io.ReadCloser
	switch {
	case !s.isRaw(p):
		r, err = s.streams.member(ctx, p)
	case p.size == 0: // there is no range to ask for
		r = io.NopCloser(strings.NewReader(""))
	default:
		r, err = s.openBlob(ctx, p.layer, 0, -1)
	}
	if err != nil {
		return nil, memberError(name, err)
	}
	return carton.NewVerifier(r, name, e.Hash, p.size), nil
}

// OpenRange opens a range of a member, unverified. In a compressed tar layer it
// reads through what lies before.
func (s *Source) OpenRange(ctx context.Context, name string, off, n int64) (io.ReadCloser, error) {
	size := s.carton.Len()
	content := func(off, n int64) (io.ReadCloser, error) {
		return io.NopCloser(io.NewSectionReader(s.carton.NewReader(), off, n)), nil
	}
	if name != carton.ManifestName {
		e, p, err := s.find(ctx, name)
		if err != nil {
			return nil, err
		}
		size = p.size
		content = func(off, n int64) (io.ReadCloser, error) {
			switch {
			case p.layer < 0:
				return bytesAt(s.generated[e.Path])(off, n)
			case s.isRaw(p):
				return s.openBlob(ctx, p.layer, off, n)
			case s.layers[p.layer].format == formatTar:
				return s.openBlob(ctx, p.layer, p.off+off, n)
			}
			return s.streams.at(ctx, p, off)
		}
	}
	r, err := carton.NewRange(name, size, off, n, content)
	return r, memberError(name, err)
}

// Sizes implements [carton.Source]: what has a size has it.
func (*Source) Sizes(context.Context, []carton.Member) error { return nil }

// CheckFraming implements [carton.Source]: it compares the bytes around a member of
// an uncompressed tar layer with what run.carton.members says of the layer.
func (s *Source) CheckFraming(ctx context.Context, name string) error {
	_, p, err := s.find(ctx, name)
	if err != nil || p.layer < 0 || p.tar == nil || s.layers[p.layer].format != formatTar {
		return err
	}
	if err := s.checkGap(ctx, p, p.gap, p.off); err != nil {
		return memberError(name, err)
	}
	if !p.last {
		return nil
	}
	// That nothing follows is what its size says, which whoever gives a range holds
	// against the descriptor's.
	return memberError(name, s.checkGap(ctx, p, p.off+p.size, p.tar.plan.Size()))
}

// CRC implements [carton.Source]: an artifact has none.
func (s *Source) CRC(string) (uint32, bool) { return 0, false }

// checkGap compares bytes of a tar layer that hold no content with the plan's.
func (s *Source) checkGap(ctx context.Context, p *place, from, to int64) error {
	if from == to {
		return nil
	}
	r, err := s.openBlob(ctx, p.layer, from, to-from)
	if err != nil {
		return err
	}
	defer r.Close()
	return p.tar.check(ctx, r, from, to)
}

// bytesAt opens ranges of b.
func bytesAt(b []byte) func(off, n int64) (io.ReadCloser, error) {
	return func(off, n int64) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(b[off : off+n])), nil
	}
}

// Close ends every request and every reader of the source.
func (s *Source) Close() error {
	s.end()
	s.fetcher.running.Wait()
	s.streams.close()
	return nil
}

// find returns the entry and place of the regular member that name is or ends
// at.
func (s *Source) find(ctx context.Context, name string) (carton.Entry, *place, error) {
	e, ok := s.carton.Lookup(name)
	if !ok {
		return e, nil, &carton.Error{Path: name, Kind: fs.ErrNotExist, Msg: "is not in the carton"}
	}
	s.mu.Lock()
	p := s.places[name]
	s.mu.Unlock()
	// The place of a file is good before all others are known.
	if p != nil && p.link == "" {
		return e, p, nil
	}
	if err := s.scanTars(ctx); err != nil {
		return e, nil, err
	}
	for p = s.places[name]; p.link != ""; p = s.places[name] { // ResolveSymlinks has checked that it ends
		name = path.Join(path.Dir(name), p.link)
	}
	e, _ = s.carton.Lookup(name)
	return e, p, nil
}

func (s *Source) isRaw(p *place) bool { return p.layer >= 0 && s.layers[p.layer].format == formatRaw }

// openBlob opens n bytes of a layer's blob as long as the source is open.
func (s *Source) openBlob(ctx context.Context, layer int, off, n int64) (io.ReadCloser, error) {
	return s.openDesc(ctx, s.manifest.Layers[layer], off, n)
}

// openDesc opens n bytes of any blob of the artifact as long as the source is
// open.
func (s *Source) openDesc(ctx context.Context, desc ocispec.Descriptor, off, n int64) (io.ReadCloser, error) {
	if s.life.Err() != nil {
		return nil, fs.ErrClosed
	}
	ctx, cancel := s.bind(ctx)
	r, err := s.fetcher.OpenRange(ctx, desc, off, n)
	if err != nil {
		cancel()
		return nil, err
	}
	return &bound{ReadCloser: r, life: s.life, cancel: cancel}, nil
}

// bind makes a context that ends with the source, too.
func (s *Source) bind(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.life, cancel)
	return ctx, func() { stop(); cancel() }
}

// bound is a reader that ends with the source.
type bound struct {
	io.ReadCloser
	life   context.Context //nolint:containedctx // the source's
	cancel context.CancelFunc
}

func (b *bound) Read(p []byte) (int, error) {
	if b.life.Err() != nil {
		return 0, fs.ErrClosed
	}
	return b.ReadCloser.Read(p)
}

func (b *bound) Close() error {
	err := b.ReadCloser.Close()
	b.cancel()
	return err
}

// memberError says in which member something went wrong.
func memberError(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", errtext.Quote(name), err)
}
