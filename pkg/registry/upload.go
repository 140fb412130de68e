package registry

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/carton-oci/carton-oci/internal/stall"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// Push stores a blob. It is one PUT of the whole where nothing goes wrong, or
// chunks where that was asked for or the registry takes it no other way; what
// broke off goes on where the registry says it stopped, and where it can't say
// that, in a new session from the beginning. With [Options].StateDir, what an
// earlier run began goes on too.
//
// Each byte is read and hashed once unless an attempt fails; of what goes on, few of
// the bytes that the registry has are read again: the state of their hash is
// remembered. An upload is completed only
// by bytes of the digest and size that the layer promises; others are
// layout.ErrDigest, and the upload is cancelled. So it is where the layer's source
// fails, unless that is somewhere else and gave no answer any more; whoever knows
// that it may do better pushes again.
func (r *Repository) Push(ctx context.Context, l layout.Layer, w layout.Watch) error {
	desc := l.Descriptor
	if err := layout.CheckDigest(desc.Digest); err != nil {
		return fmt.Errorf("blob: %w", err)
	}
	if desc.Size < 0 {
		return fmt.Errorf("blob %s: its size is %d; a size is 0 or more: %w", desc.Digest, desc.Size, layout.ErrFormat)
	}
	u := &upload{
		repo: r, content: &content{desc: desc, open: l.Open}, watch: w.NonNil(),
		strategy: r.host.strategyFor(desc.Size, r.client.opts.ChunkSize, false),
	}
	record, remembered := r.openRecord(desc)
	u.record = record
	defer record.close()
	if err := u.run(r.push(ctx), remembered); err != nil {
		return fmt.Errorf("blob %s: %w", desc.Digest, err)
	}
	return nil
}

// upload is one blob on its way: a session, a PUT or chunks, and after a failure
// the session's status and the tail, or a new session.
type upload struct {
	repo     *Repository
	content  *content
	watch    layout.Watch
	record   *record
	strategy strategy

	session     session
	off         int64            // how much of the blob the session has
	checkpoints *hashCheckpoints // of what the session was sent
	reader      *blobReader      // that has been read to off, nil where there is none

	rangeUnreliable bool // what the registry says of the session is not true

	resumed  bool  // the session is an earlier run's
	believed bool  // so are states of the hash
	best     int64 // the largest off of any session
	tries    tries // without progress
	meter    stall.Meter
	commits  int // that were never answered
}

// run uploads the blob, and goes on with what an earlier run has left, where
// remembered is not nil.
func (u *upload) run(ctx context.Context, remembered *state) error {
	defer u.closeReader()
	ctx = withTries(ctx, &u.tries)
	if remembered != nil {
		if err := u.resume(ctx, remembered); err != nil {
			return err
		}
	}
	for {
		if err := u.openSession(ctx); err != nil {
			return err
		}
		end := u.strategy.chunkEnd(u.off, u.session.minChunk)
		f := u.send(ctx, end)
		switch {
		case f == nil && end == 0:
			u.record.clear()
			return nil
		case f == nil:
			continue
		}
		if arrived, err := u.recover(ctx, f); arrived || err != nil {
			return err
		}
	}
}

// resume goes on with what an earlier run began, if the registry still has it.
func (u *upload) resume(ctx context.Context, s *state) error {
	asked, err := u.repo.url(ctx, "blobs/uploads/")
	if err != nil {
		return err
	}
	off, location, err := u.queryRemembered(ctx, s, asked)
	switch {
	case errors.Is(err, errGone), isDenied(err), errors.Is(err, ErrUnsafe):
		// Not there any more, another user's, or not what the registry said. It is
		// not cancelled: nobody but a file says that it is an upload.
		u.session = session{}
		u.record.clear()
		return nil
	case err != nil:
		return err
	}
	u.newCheckpoints()
	u.checkpoints.restore(s.Hashes)
	u.believed = len(s.Hashes) > 0
	u.session.location, u.off, u.best, u.resumed = location, off, off, true
	u.record.save(u.session)
	if mounted, ok := u.repo.takeSession(u.content.desc.Digest); ok {
		u.repo.cancelSession(ctx, mounted.location)
	}
	u.watch.Resumed(off)
	return nil
}

// queryRemembered asks how much of a remembered upload the registry has.
func (u *upload) queryRemembered(
	ctx context.Context, s *state, asked *url.URL,
) (off int64, location string, err error) {
	loc, err := url.Parse(s.Location)
	if err != nil {
		return 0, "", errGone
	}
	if location, err = u.repo.safeLocation(loc, asked); err != nil {
		return 0, "", err
	}
	if loc.Scheme != asked.Scheme { // nobody may be listening there
		return 0, "", errGone
	}
	u.session = session{location: location, minChunk: s.MinChunk}
	return u.repo.status(ctx, location, u.content.desc.Size)
}

// openSession opens a session where there is none.
func (u *upload) openSession(ctx context.Context) error {
	if u.session.location != "" {
		return nil
	}
	s, err := u.repo.openSession(ctx, u.content.desc.Digest)
	if err != nil {
		return err
	}
	u.session, u.off = s, 0
	u.newCheckpoints()
	u.closeReader()
	u.record.save(s)
	return nil
}

// newCheckpoints begins to note the hashes of what a session is sent.
func (u *upload) newCheckpoints() {
	if u.checkpoints = u.content.newCheckpoints(); u.record != nil {
		u.checkpoints.added = u.record.note
	}
}

// cancel cancels the session; the next attempt opens another.
func (u *upload) cancel(ctx context.Context) {
	if u.session.location != "" {
		u.repo.cancelSession(ctx, u.session.location)
	}
	u.session = session{}
	u.record.clear()
	if u.resumed {
		u.watch.Resumed(0)
	}
	u.resumed = false
}

// moveTo goes on at an offset of the session.
func (u *upload) moveTo(off int64, location string) {
	if off > u.best {
		// Progress; but not what a registry takes again and again and never keeps.
		u.meter.Add(int(off-u.best), 0)
		if u.best = off; u.meter.Progressed() {
			u.tries.failures = 0
		}
	}
	u.off = off
	if location != u.session.location {
		u.session.location = location
		u.record.save(u.session)
	}
}

// sent returns how much the registry can have: no more than this run has read,
// but of an earlier run's session any part.
func (u *upload) sent() int64 {
	if u.resumed {
		return u.content.desc.Size
	}
	return u.checkpoints.reached()
}

// arrived reports whether the registry has the blob.
func (u *upload) arrived(ctx context.Context) bool {
	there, _ := u.ask(ctx)
	return there
}

// ask asks the registry for the blob. known is false where it does not tell, as to
// somebody who may write and not read.
func (u *upload) ask(ctx context.Context) (there, known bool) {
	size, err := u.repo.Stat(ctx, u.content.desc.Digest)
	known = err == nil || errors.Is(err, layout.ErrNotFound) || errors.Is(err, layout.ErrDigest)
	return err == nil && size == u.content.desc.Size, known
}

// seekReader has a reader that was read up to off, and so to the digest where off
// is the blob's end.
func (u *upload) seekReader(ctx context.Context) error {
	if u.reader != nil && u.reader.pos == u.off {
		return nil
	}
	u.closeReader()
	r, err := u.openReader(ctx)
	if err != nil {
		return err
	}
	u.reader = r
	return nil
}

// openReader opens another reader, read up to off.
func (u *upload) openReader(ctx context.Context) (*blobReader, error) {
	r := newBlobReader(ctx, u.content, u.checkpoints)
	if err := r.seek(u.off); err != nil {
		_ = r.close()
		return nil, err
	}
	return r, nil
}

func (u *upload) closeReader() {
	if u.reader != nil {
		_ = u.reader.close()
	}
	u.reader = nil
}
