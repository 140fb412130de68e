package client

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/carton-oci/carton-oci/internal/download"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/progress"
	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"
)

// ImageOptions say how the image form of a stored artifact is made. The zero
// value tags it with the artifact's tag, followed by "-image".
type ImageOptions struct {
	// Tag is the image form's tag; "" is the artifact's, followed by "-image".
	Tag string
	// Subject makes the image manifest refer to the artifact's, so that registries
	// list it with that one.
	Subject bool
	// NoClobber refuses to move a tag that points to something else.
	NoClobber bool
	// DryRun finds out what would be sent, and sends nothing.
	DryRun bool
	// Concurrency is how many layers travel at once; 0 is 8.
	Concurrency int
	// Progress, which may be nil, is told what happens to each transfer.
	Progress progress.Func
}

// ImageResult says what was made. Its JSON is what `image --format json` prints.
type ImageResult struct {
	// Reference is where the image form is.
	Reference string `json:"reference"`
	// Digest is its image manifest's; "" after a dry run, which reads nothing of
	// what decides it.
	Digest digest.Digest `json:"digest,omitempty"`
	// Artifact is the artifact that it was made of.
	Artifact struct {
		Reference string        `json:"reference"`
		Digest    digest.Digest `json:"digest"`
	} `json:"artifact"`
	// ModelHash is the model's identity, in lower-case hex.
	ModelHash string `json:"modelHash"`
	// Layers is how many layers the image has.
	Layers int `json:"layers"`
	// Shared: all layers but one small one are the artifact's own.
	Shared bool `json:"shared"`
	// Size is that of all layers, in bytes.
	Size int64 `json:"size"`
	// BytesUploaded and BytesDownloaded count the bytes of blobs that travelled.
	BytesUploaded   int64 `json:"bytesUploaded"`
	BytesDownloaded int64 `json:"bytesDownloaded"`
	// Seconds is how long it took.
	Seconds float64 `json:"seconds"`
	// DryRun: nothing was sent.
	DryRun bool `json:"dryRun,omitempty"`
}

// Image makes the image form of an artifact in a registry or image layout, in
// the same repository. Tar layers within the limit of images are shared: they are
// read, whole, because nothing becomes an image that was not checked against
// MANIFEST, and only manifests and a small layer are sent. Else every member
// travels once from the registry and once to it. Either way through memory and
// never to disk; where the registry takes no chunks, new layers are read once
// more, to learn digests.
//
// A member that no image can hold is convert.ErrNoImage.
func (c *Client) Image(ctx context.Context, ref string, opts ImageOptions) (*ImageResult, error) {
	start := time.Now()
	loc, err := location.Parse(ref)
	if err == nil && !loc.IsArtifact() {
		err = location.Errorf(loc.Redacted(), "got a carton, want an artifact in a registry or an image layout")
	}
	if err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	var tags []string
	if loc.Reference() == "" {
		loc.Tag = defaultTag
	}
	if loc.Tag != "" {
		tags = []string{loc.Tag}
	}
	if tags, err = imageTags(loc, tags, opts.Tag); err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	m := &imaging{opts: opts, tags: tags, stored: map[digest.Digest]bool{}}
	result, err := m.run(ctx, c.call(), loc)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", loc, err)
	}
	result.Seconds = seconds(start)
	return result, nil
}

// imaging is the making of one image form.
type imaging struct {
	opts ImageOptions
	tags []string
	sent atomic.Int64 // bytes that went out

	stored map[digest.Digest]bool // what learn has stored
}

func (m *imaging) run(ctx context.Context, c *call, loc location.Location) (*ImageResult, error) {
	src, err := c.open(ctx, loc, OpenOptions{})
	if err != nil {
		return nil, err
	}
	defer src.Close()
	store := src.site.store
	plan, err := convert.PlanImage(ctx, src.artifact, convert.ImageOptions{Subject: m.opts.Subject})
	if err != nil {
		return nil, err
	}
	at := src.loc.Untagged()
	at.Tag = m.tags[0]
	result := &ImageResult{Reference: at.String(), ModelHash: src.Manifest().ModelHash(), Shared: plan.Shared, DryRun: m.opts.DryRun}
	result.Artifact.Reference, result.Artifact.Digest = src.loc.String(), src.artifact.Descriptor().Digest
	for _, l := range plan.Layers() {
		result.Layers++
		result.Size += l.Size
	}
	if err := m.mayPush(ctx, store, plan, result.ModelHash); err != nil {
		return nil, err
	}
	if !m.opts.DryRun {
		image, err := m.make(ctx, store, plan)
		if err != nil {
			return nil, err
		}
		result.Digest = image.Digest
	}
	result.BytesUploaded, result.BytesDownloaded = m.sent.Load(), c.received.Load()
	return result, nil
}

// make reads what was not read yet, and stores the image.
func (m *imaging) make(ctx context.Context, store layout.Store, plan *convert.ImagePlan) (*layout.Artifact, error) {
	if err := m.learn(ctx, store, plan); err != nil {
		return nil, err
	}
	image, err := plan.Artifact()
	if err != nil {
		return nil, err
	}
	return image, m.push(ctx, store, image)
}

// mayPush refuses what can be known not to work before anything is read.
func (m *imaging) mayPush(ctx context.Context, store layout.Store, plan *convert.ImagePlan, modelHash string) error {
	if err := store.CheckArtifact(ctx, &layout.Artifact{Layers: plan.Layers()}); err != nil {
		return err
	}
	if err := refuseStranger(ctx, store, m.tags); err != nil || !m.opts.NoClobber {
		return err
	}
	for _, tag := range m.tags {
		is, err := lookUp(ctx, store, tag)
		if err != nil {
			return err
		}
		if is != nil && is.image != nil && is.image.Annotations[convert.AnnotationModelHash] != modelHash {
			err := &layout.Error{Object: "tag " + tag, Kind: layout.ErrTagExists, Msg: "is the image form of another model"}
			return hint.With(err, "choose another tag (%s NAME), or leave out %s", hint.ImageTag, hint.NoClobber)
		}
	}
	return nil
}

// learn stores the layers whose digest nobody knows, and reads those that are the
// artifact's.
func (m *imaging) learn(ctx context.Context, store layout.Store, plan *convert.ImagePlan) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(download.Concurrency(m.opts.Concurrency))
	var mu sync.Mutex
	for i, l := range plan.Layers() {
		if l.Digest != "" {
			if l.Vouch != nil {
				group.Go(func() error { return m.vouch(ctx, l) })
			}
			continue
		}
		group.Go(func() error {
			dgst, stored, err := m.stream(ctx, store, l)
			if err != nil {
				return fmt.Errorf("push %s: %w", l.Name, err)
			}
			mu.Lock()
			defer mu.Unlock()
			plan.Learn(i, dgst)
			m.stored[dgst] = m.stored[dgst] || stored
			return nil
		})
	}
	return group.Wait()
}

// reporter returns what reports a layer's progress.
func (m *imaging) reporter(l layout.Layer) func(state progress.State, done int64) {
	return func(state progress.State, done int64) {
		m.opts.Progress.Report(progress.Event{Name: l.Name, State: state, Done: done, Total: l.Size})
	}
}

// vouch reads a layer that the image shares.
func (m *imaging) vouch(ctx context.Context, l layout.Layer) error {
	report := m.reporter(l)
	report(progress.Started, 0)
	return l.Vouch(ctx, nil, func(off int64) { report(progress.Moving, off) })
}

// stream stores a layer whose digest nobody knows.
func (m *imaging) stream(ctx context.Context, store layout.Store, l layout.Layer) (dgst digest.Digest, stored bool, err error) {
	report := m.reporter(l)
	report(progress.Started, 0)
	dgst, stored, err = layout.PushStream(ctx, store, l.Size, l.Open, layout.Watch{
		Moved: func(off int64) { report(progress.Moving, off) },
		Sent:  func(n int64) { m.sent.Add(n) },
	})
	if stored {
		report(progress.Finished, l.Size)
	}
	return dgst, stored, err
}

// push brings what is not there yet, and the image manifest.
func (m *imaging) push(ctx context.Context, store layout.Store, image *layout.Artifact) error {
	rest := *image
	rest.Layers = slices.DeleteFunc(slices.Clone(image.Layers), func(l layout.Layer) bool { return m.stored[l.Digest] })
	pushed, err := layout.Push(ctx, store, &rest, layout.PushOptions{
		Tags: m.tags, NoClobber: m.opts.NoClobber, Concurrency: m.opts.Concurrency, Progress: m.opts.Progress,
	})
	if err != nil {
		return err
	}
	m.sent.Add(pushed.BytesUploaded)
	return nil
}
