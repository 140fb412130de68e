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

// PushStream stores a blob of size bytes whose digest nobody knows, and returns
// the digest. Where the store takes such a blob (a registry that takes chunks),
// what open gives is read once, and stored is true. Else it is read to learn the
// digest only, and a push has to follow.
func PushStream(ctx context.Context, s Store, size int64, open Opener, w Watch) (dgst digest.Digest, stored bool, err error) {
	dgst, err = s.PushStream(ctx, size, open, w)
	if !errors.Is(err, ErrNoStream) {
		return dgst, err == nil, err
	}
	r, err := open(ctx, 0)
	if err != nil {
		return "", false, err
	}
	defer r.Close()
	counted := &iox.Source{R: r}
	if dgst, err = digest.SHA256.FromReader(counted); err != nil {
		return "", false, err
	}
	if counted.N != size {
		return "", false, fmt.Errorf("blob: got %d bytes, want %d: %w", counted.N, size, ErrDigest)
	}
	return dgst, false, nil
}
