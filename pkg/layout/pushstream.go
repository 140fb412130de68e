package layout

import (
	"context"
	"errors"
	"fmt"

	"github.com/carton-oci/carton-oci/internal/download"
	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/pkg/progress"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// ErrNoStream: a store that takes no blob whose digest nobody knows.
var ErrNoStream = errors.New("takes no blob without its digest")

// Complete makes of an artifact that is not complete ([Artifact].Complete) the one that
// it is, and stores nothing: its layers are read, for their digests, and a push reads
// them again. That is for an [ArchiveWriter], which is told first what it will hold.
func Complete(ctx context.Context, a *Artifact, opts PushOptions) (*Artifact, error) {
	told := opts.Progress
	opts.Progress = func(e progress.Event) {
		if e.State != progress.Exists { // nowhere
			told.Report(e)
		}
	}
	opts.Concurrency = download.Concurrency(opts.Concurrency)
	p := &pusher{store: nowhere{}, opts: opts, status: map[digest.Digest]Status{}, resumed: map[digest.Digest]int64{}}
	return p.complete(ctx, a)
}

// nowhere is a store that wants no blob: it has all that have a digest, and none is
// streamed to it. Nothing else is asked of it.
type nowhere struct{ Store }

func (nowhere) Has(context.Context, ocispec.Descriptor, func(int64)) (bool, error) { return true, nil }

func (nowhere) Local() bool { return false }

func (nowhere) PushStream(context.Context, int64, Opener, Watch) (digest.Digest, error) {
	return "", ErrNoStream
}

// complete brings the layers of an artifact that is not complete, and completes it.
func (p *pusher) complete(ctx context.Context, a *Artifact) (*Artifact, error) {
	if a.Complete == nil {
		return a, nil
	}
	layers := p.missing(a.Layers...)
	var unknown []*Layer
	for i := range layers {
		if layers[i].Digest == "" {
			unknown = append(unknown, &layers[i])
		}
	}
	if err := p.pushAll(ctx, layers); err != nil {
		return nil, err
	}
	var learned []digest.Digest
	for _, l := range unknown {
		learned = append(learned, l.Digest)
	}
	return a.Complete(learned)
}

// stream stores a layer whose digest nobody knows, and learns it. Where the store takes
// such a blob (a registry that takes chunks), what the layer opens is read once. Else
// it is read for its digest alone, and the status is "".
func (p *pusher) stream(ctx context.Context, l *Layer) (status Status, err error) {
	l.Digest, err = p.store.PushStream(ctx, l.Size, l.Open, p.watch(*l))
	if !errors.Is(err, ErrNoStream) {
		return Uploaded, err
	}
	r, err := l.Open(ctx, 0)
	if err != nil {
		return "", err
	}
	defer r.Close()
	var n int64
	shown := &iox.Watched{ReadCloser: r, Saw: func(b []byte, err error) error {
		n += int64(len(b))
		p.report(*l, progress.Moving, n, nil)
		return err
	}}
	if l.Digest, err = digest.SHA256.FromReader(shown); err != nil {
		return "", err
	}
	if n != l.Size {
		return "", fmt.Errorf("blob: got %d bytes, want %d: %w", n, l.Size, ErrDigest)
	}
	return "", nil
}
