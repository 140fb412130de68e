package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/carton-oci/carton-oci/pkg/layout"
)

// send sends the blob from off to end as a chunk; or, where end is 0, all that is
// left, and completes the blob. nil is success.
func (u *upload) send(ctx context.Context, end int64) *fault {
	f := &fault{chunk: end > 0, off: u.off}
	if f.err = u.seekReader(ctx); f.err != nil {
		f.source = true
		return f
	}
	sending, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	report, pace := u.reporter(stop, end)
	defer pace.end()
	req, bodies, err := u.request(ctx, sending, end, report)
	if err != nil {
		f.err = err
		return f
	}
	start := u.repo.client.now()
	resp, err := u.repo.blob.Do(req)
	f.took, f.complete = u.repo.client.now().Sub(start), true
	if bodies != nil {
		u.reader, f.complete, f.err = bodies.end()
	}
	switch {
	case f.err != nil:
		if resp != nil {
			resp.Body.Close()
		}
		f.source = true
		return f
	case err != nil:
		f.err = u.repo.host.requestError(err)
		if slow := (*slowError)(nil); errors.As(context.Cause(sending), &slow) {
			f.err = context.Cause(sending)
		}
		return f
	}
	u.repo.host.reached.Store(true)
	switch resp.StatusCode {
	case http.StatusCreated, http.StatusAccepted, http.StatusNoContent, http.StatusOK:
	default:
		f.status, f.header = resp.StatusCode, resp.Header
		f.refused = f.status >= 400 && f.status < 500 && !u.repo.client.opts.Policy.Retryable(f.status)
		f.err = u.repo.host.answerError(resp)
		return f
	}
	defer resp.Body.Close()
	if f.chunk {
		return u.tookChunk(ctx, resp, end, f)
	}
	return u.tookAll(ctx, resp, f)
}

// tookAll judges the success of what completes a blob. It is one where the registry
// names the digest with the specification's status, or has the blob when it is asked:
// something before it may say yes to everything, and one that came before all bytes
// went out is one only where somebody else has sent them.
func (u *upload) tookAll(ctx context.Context, resp *http.Response, f *fault) *fault {
	host := u.repo.host.host
	got := resp.Header.Get(digestHeader)
	if got != "" && got != u.content.desc.Digest.String() {
		f.err, f.status, f.refused = fmt.Errorf("%s stored %q: %w", host, said(got), layout.ErrDigest),
			http.StatusBadRequest, true
		return f
	}
	if f.complete && got != "" && resp.StatusCode == http.StatusCreated {
		return nil
	}
	if there, known := u.ask(ctx); there || !known && f.complete && resp.StatusCode == http.StatusCreated {
		return nil
	}
	f.err = fmt.Errorf("%s answered %d to the blob, and does not show it", host, resp.StatusCode)
	return f
}

// request makes the request for send, under a context of its own. Its body can be
// had again, so that a challenge in the middle of an upload is answered and not
// final. Where nothing is left to be sent there is none.
func (u *upload) request(
	ctx, sending context.Context, end int64, report func(int, int64),
) (*http.Request, *bodies, error) {
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
		open: func() (*blobReader, error) { return u.openReader(ctx) },
		last: &body{reader: u.reader, end: end, report: report},
	}
	req.ContentLength, req.Body, req.GetBody = end-u.off, b.last, b.again
	return req, b, nil
}

// reporter returns what is to be told of the bytes of a request, and their pace. stop
// ends the request.
func (u *upload) reporter(stop context.CancelCauseFunc, end int64) (func(n int, off int64), *pace) {
	now, left := u.repo.client.now, u.content.desc.Size-u.off
	var p *pace
	if end == 0 && left > 0 { // time is limited for a whole upload, not for a chunk
		p = u.repo.host.meter.start(&u.repo.host.behaviour, now(), left)
	}
	return func(n int, off int64) {
		u.watch.Sent(int64(n))
		u.watch.Moved(off)
		if err := p.sent(n, now()); err != nil {
			stop(err)
		}
	}, p
}
