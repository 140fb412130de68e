package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
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
// Each byte is read and hashed once unless an attempt fails; of what goes on, the
// bytes that the registry has are read, and not sent. An upload is completed only
// by bytes of the digest and size that desc promises; others are
// layout.ErrDigest, and the upload is cancelled. So it is where open or what it
// opened fails; whoever knows that it may do better pushes again.
func (r *Repository) Push(ctx context.Context, l layout.Layer, w layout.Watch) error {
	desc := l.Descriptor
	if err := layout.CheckDigest(desc.Digest); err != nil {
		return fmt.Errorf("blob: %w", err)
	}
	if desc.Size < 0 {
		return fmt.Errorf("blob %s: got a size of %d, want 0 or more: %w", desc.Digest, desc.Size, layout.ErrFormat)
	}
	u := &upload{repo: r, content: &content{desc: desc, open: l.Open}, watch: w.NonNil()}
	u.chunk = r.host.chunkFor(desc.Size, r.client.opts.ChunkSize)
	record, s, ok := r.remember(desc)
	u.record = record
	defer record.close()
	if err := u.run(r.push(ctx), s, ok); err != nil {
		return fmt.Errorf("blob %s: %w", desc.Digest, err)
	}
	return nil
}

// upload is one blob's way up the ladder: a session, a PUT or chunks, and after
// a failure the session's status and the tail, or a new session.
type upload struct {
	repo    *Repository
	content *content
	watch   layout.Watch
	record  *record

	session session
	off     int64   // how much of the blob the session has
	trail   *trail  // of the session
	stream  *stream // that has been read to off, nil where there is none

	chunk    int64 // bytes in a chunk, 0 for one PUT
	tooLarge error // what one PUT was refused with, nil where it was not
	noChunks bool  // chunks were refused
	noStream bool  // chunks were refused, and without the digest there is no other way
	deaf     bool  // what the registry says of the session is not true
	cuts     int   // PUTs that broke off of which nothing arrived
	losses   int   // sessions lost while chunks were sent

	resumed bool  // the session is an earlier run's
	best    int64 // the largest off of any session
	tries   tries // without progress
	meter   stall.Meter
	commits int // that were never answered
}

// run goes up the ladder, from what an earlier run has left where there is any.
func (u *upload) run(ctx context.Context, s state, ok bool) error {
	defer u.drop()
	ctx = withTries(ctx, &u.tries)
	if ok {
		if err := u.takeUp(ctx, s); err != nil {
			return err
		}
	}
	for {
		if err := u.begin(ctx); err != nil {
			return err
		}
		end := u.chunkEnd()
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

// takeUp goes on with what an earlier run began, if the registry still has it.
func (u *upload) takeUp(ctx context.Context, s state) error {
	asked, err := u.repo.url(ctx, "blobs/uploads/")
	if err != nil {
		return err
	}
	off, newer, err := u.ask(ctx, s, asked)
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
	u.trail = newTrail(u.content.desc.Size)
	u.session.location, u.off, u.best, u.resumed = newer, off, off, true
	u.record.save(u.session)
	if mounted, ok := u.repo.takeSession(u.content.desc.Digest); ok {
		u.repo.cancelSession(ctx, mounted.location)
	}
	u.watch.Resumed(off)
	return nil
}

// ask asks how much of a remembered upload the registry has.
func (u *upload) ask(ctx context.Context, s state, asked *url.URL) (off int64, newer string, err error) {
	loc, err := url.Parse(s.Location)
	if err != nil {
		return 0, "", errGone
	}
	location, err := u.repo.safeLocation(loc, asked)
	if err != nil {
		return 0, "", err
	}
	if loc.Scheme != asked.Scheme { // nobody may be listening there
		return 0, "", errGone
	}
	u.session = session{location: location, least: s.MinChunk}
	return u.repo.status(ctx, location, u.content.desc.Size)
}

// begin opens a session where there is none.
func (u *upload) begin(ctx context.Context) error {
	if u.session.location != "" {
		return nil
	}
	s, err := u.repo.openSession(ctx, u.content.desc.Digest)
	if err != nil {
		return err
	}
	u.session, u.off, u.trail = s, 0, u.content.newTrail()
	u.drop()
	u.record.save(s)
	return nil
}

// abandon cancels the session; the next attempt opens another.
func (u *upload) abandon(ctx context.Context) {
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

// drop closes the stream.
func (u *upload) drop() {
	if u.stream != nil {
		_ = u.stream.close()
	}
	u.stream = nil
}

// ready has a stream in place: read up to off, and so to the digest where off is
// the blob's end.
func (u *upload) ready(ctx context.Context) error {
	if u.stream != nil && u.stream.pos == u.off {
		return nil
	}
	u.drop()
	s, err := u.seek(ctx)
	if err != nil {
		return err
	}
	u.stream = s
	return nil
}

// seek opens a stream at off.
func (u *upload) seek(ctx context.Context) (*stream, error) {
	s := newStream(ctx, u.content, u.trail)
	if err := s.seek(u.off); err != nil {
		_ = s.close()
		return nil, err
	}
	return s, nil
}

// send sends the blob from off to end as a chunk; or, where end is 0, all that is
// left, and completes the blob. nil is success.
func (u *upload) send(ctx context.Context, end int64) *fault {
	if err := u.ready(ctx); err != nil {
		return &fault{err: err, source: true}
	}
	sending, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	told, pace := u.teller(stop, end)
	defer pace.end()
	req, bodies, err := u.request(ctx, sending, end, told)
	if err != nil {
		return &fault{err: err}
	}
	start := u.repo.client.now()
	resp, err := u.repo.blob.Do(req)
	f := &fault{patch: end > 0, took: u.repo.client.now().Sub(start)}
	var own error
	if bodies != nil {
		u.stream, f.complete, own = bodies.end()
	} else {
		f.complete = true
	}
	switch {
	case own != nil:
		if resp != nil {
			resp.Body.Close()
		}
		f.err, f.source = own, true
		return f
	case err != nil:
		f.err = u.repo.host.requestError(err)
		if slow := (*slowError)(nil); errors.As(context.Cause(sending), &slow) {
			f.err = context.Cause(sending)
		}
		return f
	}
	u.repo.host.reached.Store(true)
	if f.patch {
		return u.tookChunk(ctx, resp, end, f)
	}
	return u.tookAll(ctx, resp, f)
}

// tookAll judges the answer to what completes a blob.
func (u *upload) tookAll(ctx context.Context, resp *http.Response, f *fault) *fault {
	desc := u.content.desc
	switch resp.StatusCode {
	case http.StatusCreated, http.StatusAccepted, http.StatusNoContent:
		defer resp.Body.Close()
		if got := resp.Header.Get(digestHeader); got != "" && got != desc.Digest.String() {
			f.err, f.status = fmt.Errorf("%s stored %q: %w", u.repo.host.host, said(got), layout.ErrDigest), http.StatusBadRequest
			return f
		}
		if !f.complete {
			return u.tookEarly(ctx, f)
		}
		return nil
	}
	f.status, f.header = resp.StatusCode, resp.Header
	f.err = u.repo.host.answerError(resp)
	return f
}

// tookEarly judges a success that came before all bytes went out: it is one only where
// the registry has the blob, from somebody else.
func (u *upload) tookEarly(ctx context.Context, f *fault) *fault {
	size, err := u.repo.Stat(ctx, u.content.desc.Digest)
	if err == nil && size == u.content.desc.Size {
		return nil
	}
	f.err = fmt.Errorf("%s says that it has the blob, and took a part of it", u.repo.host.host)
	return f
}

// request makes the request for send, under a context of its own. Its body can be had again, so that a
// challenge in the middle of an upload is answered and not final. Where nothing
// is left to be sent there is none.
func (u *upload) request(ctx, sending context.Context, end int64, told func(int, int64)) (*http.Request, *bodies, error) {
	desc, method := u.content.desc, http.MethodPatch
	loc, err := url.Parse(u.session.location)
	if err != nil {
		return nil, nil, err
	}
	if end == 0 {
		q := loc.Query()
		q.Set("digest", desc.Digest.String())
		loc.RawQuery, method, end = q.Encode(), http.MethodPut, desc.Size
	}
	req, err := http.NewRequestWithContext(sending, method, loc.String(), http.NoBody)
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Content-Type", "application/octet-stream")
	if u.off == end {
		return req, nil, nil
	}
	if u.off > 0 || method == http.MethodPatch {
		req.Header.Set("Content-Range", fmt.Sprintf("%d-%d", u.off, end-1))
	}
	b := &bodies{
		open: func(s *stream) *body { return &body{stream: s, end: end, told: told} },
		seek: func() (*stream, error) { return u.seek(ctx) },
	}
	req.ContentLength = end - u.off
	req.Body = b.first(u.stream)
	req.GetBody = func() (io.ReadCloser, error) { return b.again() }
	return req, b, nil
}

// teller returns what is to be told of the bytes of a request, and their pace. stop
// ends the request.
func (u *upload) teller(stop context.CancelCauseFunc, end int64) (func(n int, off int64), *pace) {
	now, left := u.repo.client.now, u.content.desc.Size-u.off
	var p *pace
	if end == 0 && left > 0 { // time is limited for a whole upload, not for a chunk
		p = u.repo.host.meter.start(&u.repo.host.behaviour, now(), left)
	}
	return func(n int, off int64) {
		u.watch.Sent(int64(n))
		u.watch.Moved(off)
		if p == nil {
			return
		}
		if err := p.sent(n, now()); err != nil {
			stop(err)
		}
	}, p
}
