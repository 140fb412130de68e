package convert

import (
	"context"
	"io"

	"github.com/opencontainers/go-digest"
)

// openVerifying opens the blob of a tar layer from an offset. Where that is 0 and
// the tar is not compressed, it is verified as it goes by, so that a layer that
// travels to another place is read once: the last bytes are given out when
// nothing was wrong. (What is compressed may have to wait for memory, which a
// request that is under way has no time for; it is read by itself.)
func (s *Source) openVerifying(ctx context.Context, i int, off int64) (io.ReadCloser, error) {
	checked := &s.layers[i].checked
	blob, err := s.openBlob(ctx, i, off, -1)
	if err != nil || off > 0 || s.layers[i].format != formatTar || checked.known() != "" {
		return blob, err
	}
	if err := s.scanTars(ctx); err != nil {
		_ = blob.Close() // nothing more is wanted of it
		return nil, err
	}
	from, to := io.Pipe()
	v := &verifyingBlob{blob: blob, copy: to, left: s.manifest.Layers[i].Size, ended: make(chan struct{})}
	go func() {
		defer close(v.ended)
		var diffID digest.Digest
		if diffID, v.err = s.verifyTarBlob(ctx, i, from); v.err != nil {
			v.err = s.inLayer(i, v.err)
			_ = from.CloseWithError(v.err) // it has none
			return
		}
		checked.mu.Lock()
		defer checked.mu.Unlock()
		checked.diffID = diffID
	}()
	return v, nil
}

// verifyingBlob is a blob that is verified, from a copy of its bytes, as it is read.
type verifyingBlob struct {
	blob  io.ReadCloser
	copy  *io.PipeWriter // to who verifies
	left  int64          // bytes that were not copied yet
	ended chan struct{}  // closed when all was verified
	err   error          // what is wrong; to be read when that has ended
}

func (v *verifyingBlob) Read(b []byte) (int, error) {
	n, err := v.blob.Read(b)
	if n > 0 {
		if _, wrong := v.copy.Write(b[:n]); wrong != nil {
			return 0, wrong
		}
	}
	v.left -= int64(n)
	switch {
	case err != nil && err != io.EOF: // a wrapped EOF is a fault, not the end
		_ = v.copy.CloseWithError(err) // it has none
	case err == io.EOF, v.left <= 0:
		_ = v.copy.Close() // it has none
		if <-v.ended; v.err != nil {
			return 0, v.err
		}
	}
	return n, err
}

// Close ends the verification, too.
func (v *verifyingBlob) Close() error {
	_ = v.copy.CloseWithError(io.ErrClosedPipe) // it has none
	<-v.ended
	return v.blob.Close()
}
