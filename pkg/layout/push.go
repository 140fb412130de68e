package layout

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/carton-oci/carton-oci/internal/download"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/progress"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

const (
	// defaultConcurrency is how many blobs are pushed at once.
	defaultConcurrency = 8
	// pushAttempts is how often a blob is pushed whose source says that another
	// attempt may do better.
	pushAttempts = 3
)

// PushOptions say how an artifact is pushed. The zero value pushes by digest,
// without a tag.
type PushOptions struct {
	// Tags are pointed to the artifact when it is complete.
	Tags []string
	// NoClobber refuses, with ErrTagExists, to move a tag that points to another
	// artifact. It looks before anything is sent and again before the tags move
	// ([PutManifest]).
	NoClobber bool
	// Concurrency is how many blobs are pushed at once; 0 is 8.
	Concurrency int
	// Progress is told of every blob, once a digest.
	Progress progress.Func
}

// Status says how a blob got to where it was pushed.
type Status string

// The ways for a blob to get there.
const (
	Uploaded Status = "uploaded" // its bytes were sent
	Exists   Status = "exists"   // it was there
	Mounted  Status = "mounted"  // from another repository of the same registry
)

// LayerStatus is what happened to one layer.
type LayerStatus struct {
	Name      string
	MediaType string
	Digest    digest.Digest
	Size      int64
	Status    Status
}

// PushResult is what a push did.
type PushResult struct {
	// Config and Layers are in the order of the image manifest. Layers of one
	// digest have the one status of their blob.
	Config LayerStatus
	Layers []LayerStatus
	// BytesUploaded counts the bytes of blobs that went out in this run. Those
	// that had to be sent again, and those of attempts that failed, count again
	// where the store tells of them (a registry does); else it is the sum of the
	// sizes of the blobs that were uploaded.
	BytesUploaded int64
	// BytesResumed counts the bytes of uploaded blobs that the store had from an
	// earlier run: neither sent now nor part of BytesUploaded.
	BytesResumed int64
}

// Push brings an artifact to a store: every blob that is not there, once, and
// then the image manifest, and the tags with it. A blob is opened only if it is
// neither there nor can be mounted from one of its origins. What the store is
// known not to take is refused before anything else ([CheckArtifact]), and what a
// layer's source does not vouch for, before the image manifest goes. On an
// error the tags are where they were; blobs that are through stay.
func Push(ctx context.Context, s Store, a *Artifact, opts PushOptions) (*PushResult, error) {
	if err := CheckArtifact(ctx, s, a); err != nil {
		return nil, err
	}
	p := &pusher{
		store: s, opts: opts, budget: download.NewBudget(opts.Concurrency),
		status: map[digest.Digest]Status{}, resumed: map[digest.Digest]int64{},
	}
	if opts.NoClobber {
		if err := CheckTags(ctx, s, a.Digest, opts.Tags...); err != nil {
			return nil, err
		}
	}
	if err := p.pushAll(ctx, uniqueLayers(a)); err != nil {
		return nil, err
	}
	if err := PutManifest(ctx, s, a, opts); err != nil {
		return nil, err
	}
	return p.result(a), nil
}

// PutManifest is the end of [Push]: the image manifest, whose blobs are there, and the
// tags. With NoClobber it looks at the tags once more, in a folder while nobody else
// writes its index; a registry has no such thing, and a tag that moves between two
// requests of ours is moved again.
func PutManifest(ctx context.Context, s Store, a *Artifact, opts PushOptions) error {
	var err error
	if d, ok := s.(*Dir); ok {
		err = d.putManifest(ctx, a.Descriptor, a.Manifest, opts.NoClobber, opts.Tags...)
	} else {
		if opts.NoClobber {
			err = CheckTags(ctx, s, a.Digest, opts.Tags...)
		}
		if err == nil {
			err = s.PutManifest(ctx, a.Descriptor, a.Manifest, opts.Tags...)
		}
	}
	if err != nil && !errors.Is(err, ErrTagExists) {
		err = fmt.Errorf("push image manifest: %w", err)
	}
	return err
}

// CheckArtifact asks a store whether it is known not to take an artifact: too
// large a layer, too many of them. It sends nothing to the place that the store
// stands for. A store that knows no limits has no objection.
func CheckArtifact(ctx context.Context, s Store, a *Artifact) error {
	if c, ok := s.(interface {
		CheckArtifact(ctx context.Context, a *Artifact) error
	}); ok {
		return c.CheckArtifact(ctx, a)
	}
	return nil
}

// Has reports whether a store holds a blob: by its digest; by media type, digest and
// size where the store knows content so ([FromTarget]); by its content in a folder
// ([Dir.Has]). One of another size is ErrDigest elsewhere.
func Has(ctx context.Context, s Store, desc ocispec.Descriptor) (bool, error) {
	if byDescriptor, ok := s.(interface {
		Has(ctx context.Context, desc ocispec.Descriptor) (bool, error)
	}); ok {
		return byDescriptor.Has(ctx, desc)
	}
	size, err := s.Stat(ctx, desc.Digest)
	switch {
	case errors.Is(err, ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	case size != desc.Size:
		return false, errorf(ErrDigest, string(desc.Digest), "is %d bytes in the store, want %d", size, desc.Size)
	}
	return true, nil
}

type pusher struct {
	store  Store
	opts   PushOptions
	sent   atomic.Int64
	budget *download.Budget // connections that read ranges

	mu      sync.Mutex
	status  map[digest.Digest]Status
	resumed map[digest.Digest]int64
}

// uniqueLayers returns the config and the layers, each digest once, with the
// origins of all that have it, and vouched for by all.
func uniqueLayers(a *Artifact) []Layer {
	var list []Layer
	at := map[digest.Digest]int{}
	for _, l := range append([]Layer{a.Config}, a.Layers...) {
		i, ok := at[l.Digest]
		if !ok {
			at[l.Digest] = len(list)
			list = append(list, l)
			continue
		}
		list[i].Origins = append(list[i].Origins[:len(list[i].Origins):len(list[i].Origins)], l.Origins...)
		list[i].Vouch = both(list[i].Vouch, l.Vouch)
	}
	return list
}

// CheckTags is ErrTagExists where one of the tags points to another artifact.
func CheckTags(ctx context.Context, s Fetcher, want digest.Digest, tags ...string) error {
	for _, tag := range tags {
		desc, err := s.Resolve(ctx, tag)
		switch {
		case errors.Is(err, ErrNotFound):
		case err != nil:
			return fmt.Errorf("look for tag %s: %w", quote(tag), err)
		case desc.Digest != want:
			return hint.With(errorf(ErrTagExists, "tag "+tag, "points to %s, not to %s", desc.Digest, want),
				"choose another tag, or push without --no-clobber")
		}
	}
	return nil
}

// pushAll pushes the layers, some at once. The first error stops the others and
// is returned.
func (p *pusher) pushAll(ctx context.Context, layers []Layer) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	next := make(chan Layer)
	var workers sync.WaitGroup
	n := p.opts.Concurrency
	if n <= 0 {
		n = defaultConcurrency
	}
	for range min(n, len(layers)) {
		workers.Go(func() {
			for l := range next {
				if ctx.Err() != nil {
					continue
				}
				if err := p.pushOne(ctx, l); err != nil {
					stop(fmt.Errorf("push %s: %w", quote(l.label()), err))
				}
			}
		})
	}
	for _, l := range layers {
		next <- l
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}

func (p *pusher) pushOne(ctx context.Context, l Layer) error {
	p.report(l, progress.Started, 0, nil)
	status, err := p.bring(ctx, l)
	if err == nil {
		err = p.vouch(ctx, l)
	}
	if err != nil {
		return err
	}
	switch status {
	case Exists:
		p.report(l, progress.Exists, l.Size, nil)
	case Mounted:
		p.report(l, progress.Mounted, l.Size, nil)
	case Uploaded:
		p.report(l, progress.Finished, l.Size, nil)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status[l.Digest] = status
	return nil
}

// bring gets a blob into the store in the cheapest way that works.
func (p *pusher) bring(ctx context.Context, l Layer) (Status, error) {
	there, err := p.has(ctx, l)
	if err != nil {
		return "", err
	}
	if there {
		return Exists, nil
	}
	for _, from := range l.Origins {
		ok, err := p.store.Mount(ctx, l.Descriptor, from)
		if err != nil {
			return "", fmt.Errorf("mount from %s/%s: %w", from.Registry, from.Repository, err)
		}
		if ok {
			return Mounted, nil
		}
	}
	return Uploaded, p.upload(ctx, l)
}

// has asks whether the store holds a blob, and tells how far a folder's has been read.
func (p *pusher) has(ctx context.Context, l Layer) (bool, error) {
	d, ok := p.store.(*Dir)
	if !ok {
		return Has(ctx, p.store, l.Descriptor)
	}
	there, damaged, err := d.has(ctx, l.Descriptor, func(off int64) { p.report(l, progress.Moving, off, nil) })
	if damaged {
		p.report(l, progress.Retrying, 0, errorf(ErrDigest, string(l.Digest), "is damaged in %s, and replaced", quote(d.path)))
	}
	return there, err
}

// upload pushes a blob. Where what arrived does not have the digest, the source
// is asked whether it is to blame.
func (p *pusher) upload(ctx context.Context, l Layer) error {
	err := p.try(ctx, l)
	if errors.Is(err, ErrDigest) && l.Check != nil && ctx.Err() == nil {
		if wrong := l.Check(ctx); wrong != nil {
			return wrong
		}
	}
	return err
}

// try pushes a blob, and again where its source says that this may help.
func (p *pusher) try(ctx context.Context, l Layer) error {
	if l.Open == nil {
		return errorf(ErrNotFound, string(l.Digest), "is not in the store and nothing else has it")
	}
	if d, ok := p.store.(*Dir); ok {
		return p.fill(ctx, d, l)
	}
	for attempt := 1; ; attempt++ {
		err := p.send(ctx, l)
		if err == nil || attempt == pushAttempts || ctx.Err() != nil || !temporary(err) {
			return err
		}
		p.report(l, progress.Retrying, 0, err)
	}
}

// send is one attempt to bring a blob's bytes to the store.
func (p *pusher) send(ctx context.Context, l Layer) error {
	moved := func(off int64) { p.report(l, progress.Moving, off, nil) }
	if s, ok := p.store.(interface {
		Upload(ctx context.Context, desc ocispec.Descriptor, open Opener, w Watch) error
	}); ok {
		return s.Upload(ctx, l.Descriptor, l.Open, Watch{
			Moved:   moved,
			Sent:    func(n int64) { p.sent.Add(n) },
			Resumed: func(n int64) { p.resume(l, n) },
		})
	}
	err := p.store.Push(ctx, l.Descriptor, l.Open, moved)
	if err == nil {
		p.sent.Add(l.Size)
	}
	return err
}

// fill brings a blob to a folder.
func (p *pusher) fill(ctx context.Context, d *Dir, l Layer) error {
	resumed, err := d.fill(ctx, l, p.budget, func(e progress.Event) {
		switch e.State {
		case progress.Resumed:
			p.resume(l, e.Done)
		case progress.Moving, progress.Retrying:
			p.report(l, e.State, e.Done, e.Err)
		}
	})
	if err == nil {
		p.mu.Lock()
		p.resumed[l.Digest] = resumed
		p.mu.Unlock()
		p.sent.Add(l.Size - resumed)
	}
	return err
}

// resume notes how much of a blob the store has from an earlier run.
func (p *pusher) resume(l Layer, n int64) {
	p.mu.Lock()
	p.resumed[l.Digest] = n
	p.mu.Unlock()
	if n > 0 {
		p.report(l, progress.Resumed, n, nil)
	}
}

// temporary reports whether an error says that another attempt may do better.
func temporary(err error) bool {
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary()
}

func (p *pusher) report(l Layer, state progress.State, done int64, err error) {
	p.opts.Progress.Report(progress.Event{Name: l.label(), State: state, Done: done, Total: l.Size, Err: err})
}

// label is what people see of a layer.
func (l *Layer) label() string {
	if l.Name != "" {
		return l.Name
	}
	return string(l.Digest)
}

func (p *pusher) result(a *Artifact) *PushResult {
	status := func(l Layer) LayerStatus {
		return LayerStatus{Name: l.Name, MediaType: l.MediaType, Digest: l.Digest, Size: l.Size, Status: p.status[l.Digest]}
	}
	r := &PushResult{Config: status(a.Config), BytesUploaded: p.sent.Load()}
	for _, n := range p.resumed {
		r.BytesResumed += n
	}
	for _, l := range a.Layers {
		r.Layers = append(r.Layers, status(l))
	}
	return r
}
