package layout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/carton-oci/carton-oci/internal/download"
	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/progress"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// PushOptions say how an artifact is pushed. The zero value pushes by digest,
// without a tag.
type PushOptions struct {
	// Tags are pointed to the artifact when it is complete.
	Tags []string
	// NoClobber refuses, with ErrTagExists, to move a tag that points to another
	// artifact. It looks before anything is sent and again before the tags move
	// ([PutOptions]).
	NoClobber bool
	// Concurrency is how many blobs are pushed at once, and how many sources are open;
	// 0 is 8.
	Concurrency int
	// Progress is told of every blob, once a digest.
	Progress progress.Func
	// After is an earlier push to the same store, or nil: what it brought is not asked
	// for again.
	After *PushResult
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
	// Descriptor is the image manifest's.
	Descriptor ocispec.Descriptor
	// Config and Layers are in the order of the image manifest. Layers of one
	// digest have the one status of their blob.
	Config LayerStatus
	Layers []LayerStatus
	// BytesUploaded counts the bytes of blobs that went out in this run, as the
	// store told ([Watch].Sent).
	BytesUploaded int64
	// BytesResumed counts the bytes of uploaded blobs that the store had from an
	// earlier run: neither sent now nor part of BytesUploaded.
	BytesResumed int64
}

// Push brings an artifact to a store: every blob that is not there, once, and
// then the image manifest, and the tags with it. A blob is opened only if it is
// neither there nor can be mounted from one of its origins. What the store is
// known not to take is refused before anything else ([Store].CheckArtifact), and
// what a layer's source does not vouch for, before the image manifest goes. On an
// error the tags are where they were; blobs that are through stay.
//
// An artifact that is not complete ([Artifact].Complete) is completed when its layers
// are in the store. NoClobber then looks before the tags move and no sooner.
func Push(ctx context.Context, s Store, a *Artifact, opts PushOptions) (*PushResult, error) {
	if err := s.CheckArtifact(ctx, a); err != nil {
		return nil, err
	}
	if opts.NoClobber && a.Complete == nil {
		if err := CheckTags(ctx, s, a.Digest, opts.Tags...); err != nil {
			return nil, err
		}
	}
	opts.Concurrency = download.Concurrency(opts.Concurrency)
	p := &pusher{
		store: s, opts: opts,
		status: map[digest.Digest]Status{}, resumed: map[digest.Digest]int64{},
	}
	if opts.After != nil {
		for _, l := range append([]LayerStatus{opts.After.Config}, opts.After.Layers...) {
			p.status[l.Digest] = Exists
		}
	}
	a, err := p.complete(ctx, a)
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		if err := p.pushAll(ctx, p.missing(a.blobs()...)); err != nil {
			return nil, err
		}
		err = s.PutManifest(ctx, a.Descriptor, a.Manifest, PutOptions{Tags: opts.Tags, NoClobber: opts.NoClobber})
		switch {
		case err == nil:
			return p.result(a), nil
		case errors.Is(err, ErrTagExists):
			return nil, err
		case !s.Local() || !errors.Is(err, ErrNotFound) || attempt == download.Attempts:
			return nil, fmt.Errorf("push image manifest: %w", err)
		}
		// Somebody has deleted another artifact, and with it a blob that was there.
		p.forget()
	}
}

// forget has every blob asked for again.
func (p *pusher) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.status)
}

type pusher struct {
	store Store
	opts  PushOptions
	sent  atomic.Int64
	// spare has one for each source that may be open beside the one of every worker.
	spare chan struct{}

	mu      sync.Mutex
	status  map[digest.Digest]Status
	resumed map[digest.Digest]int64
}

// missing returns the layers that were not brought yet: each digest once, with the
// origins of all that have it, and vouched for by all.
func (p *pusher) missing(layers ...Layer) []Layer {
	var list []Layer
	at := map[digest.Digest]int{}
	for _, l := range layers {
		i, ok := at[l.Digest]
		switch {
		case p.status[l.Digest] != "":
		case !ok || l.Digest == "":
			at[l.Digest] = len(list)
			list = append(list, l)
		default:
			list[i].Origins = append(list[i].Origins[:len(list[i].Origins):len(list[i].Origins)], l.Origins...)
			list[i].Vouch = both(list[i].Vouch, l.Vouch)
		}
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
				"choose another tag, or push without %s", hint.NoClobber)
		}
	}
	return nil
}

// pushAll pushes the layers, some at once. The first error stops the others and
// is returned.
func (p *pusher) pushAll(ctx context.Context, layers []Layer) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	next := make(chan *Layer)
	var workers sync.WaitGroup
	p.spare = make(chan struct{}, p.opts.Concurrency)
	for i := range p.opts.Concurrency {
		if i >= len(layers) {
			p.spare <- struct{}{}
			continue
		}
		workers.Go(func() {
			defer func() { p.spare <- struct{}{} }()
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
	for i := range layers {
		next <- &layers[i]
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}

// pushOne brings a layer to the store, and learns its digest where nobody knows it.
func (p *pusher) pushOne(ctx context.Context, l *Layer) error {
	p.report(*l, progress.Started, 0, nil)
	var status Status
	var err error
	if l.Digest == "" {
		status, err = p.stream(ctx, l)
	}
	if status == "" && err == nil {
		status, err = p.bring(ctx, *l)
	}
	if err == nil {
		err = p.vouch(ctx, *l)
	}
	if err != nil {
		return err
	}
	switch status {
	case Exists:
		p.report(*l, progress.Exists, l.Size, nil)
	case Mounted:
		p.report(*l, progress.Mounted, l.Size, nil)
	case Uploaded:
		p.report(*l, progress.Finished, l.Size, nil)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status[l.Digest] = status
	return nil
}

// bring gets a blob into the store in the cheapest way that works.
func (p *pusher) bring(ctx context.Context, l Layer) (Status, error) {
	there, err := p.store.Has(ctx, l.Descriptor, func(off int64) { p.report(l, progress.Moving, off, nil) })
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
	l = p.sharing(l)
	w := p.watch(l)
	for attempt := 1; ; attempt++ {
		err := p.store.Push(ctx, l, w)
		if err == nil || attempt == download.Attempts || ctx.Err() != nil || !download.Temporary(err) {
			return err
		}
		p.report(l, progress.Retrying, 0, err)
	}
}

// watch tells how a layer gets to the store.
func (p *pusher) watch(l Layer) Watch {
	return Watch{
		Resumed:  func(n int64) { p.resume(l, n) },
		Moved:    func(off int64) { p.report(l, progress.Moving, off, nil) },
		Sent:     func(n int64) { p.sent.Add(n) },
		Retrying: func(off int64, err error) { p.report(l, progress.Retrying, off, err) },
	}
}

// sharing has a layer read many ranges at once: its worker's own, and what is spare.
// All else is read one after another, so that no more sources are open than workers
// were asked for.
func (p *pusher) sharing(l Layer) Layer {
	open := l.OpenRange
	if open == nil {
		return l
	}
	own := make(chan struct{}, 1)
	own <- struct{}{}
	l.Connections = p.opts.Concurrency
	l.OpenRange = func(ctx context.Context, off, n int64) (io.ReadCloser, error) {
		var from chan struct{}
		select {
		case <-own:
			from = own
		case <-p.spare:
			from = p.spare
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		r, err := open(ctx, off, n)
		if err != nil {
			from <- struct{}{}
			return nil, err
		}
		give := sync.OnceFunc(func() { from <- struct{}{} })
		return iox.Over{ReadCloser: r, Under: closerFunc(func() error { give(); return nil })}, nil
	}
	return l
}

type closerFunc func() error

func (f closerFunc) Close() error { return f() }

// resume notes how much of a blob the store has from an earlier run.
func (p *pusher) resume(l Layer, n int64) {
	p.mu.Lock()
	p.resumed[l.Digest] = n
	p.mu.Unlock()
	if n > 0 {
		p.report(l, progress.Resumed, n, nil)
	}
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
		return LayerStatus{
			Name: l.Name, MediaType: l.MediaType, Digest: l.Digest, Size: l.Size,
			Status: p.status[l.Digest],
		}
	}
	r := &PushResult{Descriptor: a.Descriptor, Config: status(a.Config), BytesUploaded: p.sent.Load()}
	for _, n := range p.resumed {
		r.BytesResumed += n
	}
	for _, l := range a.Layers {
		r.Layers = append(r.Layers, status(l))
	}
	return r
}
