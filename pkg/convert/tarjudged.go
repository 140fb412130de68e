package convert

import (
	"context"
	"io"

	"github.com/opencontainers/go-digest"
)

// openJudged opens the blob of a tar layer from an offset. Where that is 0 and
// the tar is not compressed, it is judged as it goes by, so that a layer that
// travels to another place is read once: the last bytes are given out when
// nothing was wrong. (What is compressed may have to wait for memory, which a
// request that is under way has no time for; it is read by itself.)
func (s *Source) openJudged(ctx context.Context, i int, off int64) (io.ReadCloser, error) {
	blob, err := s.openBlob(ctx, i, off, -1)
	if err != nil || off > 0 || s.layers[i].format != formatTar || s.layers[i].checked.known() != "" {
		return blob, err
	}
	if err := s.lookInside(ctx); err != nil {
		_ = blob.Close() // nothing more is wanted of it
		return nil, err
	}
	from, to := io.Pipe()
	j := &judged{blob: blob, judge: to, left: s.manifest.Layers[i].Size, ended: make(chan struct{})}
	go func() {
		defer close(j.ended)
		var diffID digest.Digest
		if diffID, j.err = s.readTar(ctx, i, from); j.err != nil {
			j.err = s.inLayer(i, j.err)
			_ = from.CloseWithError(j.err) // it has none
			return
		}
		checked := &s.layers[i].checked
		checked.mu.Lock()
		defer checked.mu.Unlock()
		checked.diffID = diffID
	}()
	return j, nil
}

// judged is a blob that is judged as it is read.
type judged struct {
	blob  io.ReadCloser
	judge *io.PipeWriter
	left  int64         // bytes that the judge has not seen
	ended chan struct{} // closed when the judge is done
	err   error         // what he found; to be read when he is done
}

func (j *judged) Read(b []byte) (int, error) {
	n, err := j.blob.Read(b)
	if n > 0 {
		if _, wrong := j.judge.Write(b[:n]); wrong != nil {
			return 0, wrong
		}
	}
	j.left -= int64(n)
	switch {
	case err != nil && err != io.EOF: // a wrapped EOF is a fault, not the end
		_ = j.judge.CloseWithError(err) // it has none
	case err == io.EOF, j.left <= 0:
		_ = j.judge.Close() // it has none
		if <-j.ended; j.err != nil {
			return 0, j.err
		}
	}
	return n, err
}

// Close ends the judge, too.
func (j *judged) Close() error {
	_ = j.judge.CloseWithError(io.ErrClosedPipe) // it has none
	<-j.ended
	return j.blob.Close()
}
