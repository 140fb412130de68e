package layout

import (
	"context"
	"errors"
	"fmt"

	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/opencontainers/go-digest"
)

// ErrNoStream: a store that takes no blob whose digest nobody knows.
var ErrNoStream = errors.New("takes no blob without its digest")

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
	counted := &iox.Source{R: r}
	if l.Digest, err = digest.SHA256.FromReader(counted); err != nil {
		return "", err
	}
	if counted.N != l.Size {
		return "", fmt.Errorf("blob: got %d bytes, want %d: %w", counted.N, l.Size, ErrDigest)
	}
	return "", nil
}
