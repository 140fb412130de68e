package download

import "errors"

// near copies a part from this machine, and brings it like any other where that
// does not do.
func (r *run) near(i int, buf []byte) error {
	p, err := r.open(i, false)
	if err != nil {
		return err
	}
	there, err := r.recheckOrCopy(p, buf)
	switch {
	case err != nil || there:
		return errors.Join(err, r.ended(p))
	case p.byRanges():
		return r.beginRanges(p)
	}
	return errors.Join(r.stream(p, buf), r.ended(p))
}

// recheckOrCopy reports whether a part is there: from an earlier run, or from its
// copy on this machine. Only what ends the run is an error.
func (r *run) recheckOrCopy(p *part, buf []byte) (bool, error) {
	there, err := r.recheckOrForget(p, buf)
	if there || err != nil {
		return there, err
	}
	size, crc, err := r.attempt(p, r.job.Near, buf)
	if err == nil {
		r.mu.Lock()
		r.res.There += size
		r.mu.Unlock()
		return true, r.finish(p, size, crc, 0)
	}
	if disk, ok := err.(diskError); ok { //nolint:errorlint // made by attempt, never wrapped
		return false, disk.error
	}
	if r.ctx.Err() != nil {
		return false, r.ctx.Err()
	}
	p.meter.restart()
	p.meter.retry(err)
	return false, nil
}

// ended closes a part that nobody else was busy with.
func (r *run) ended(p *part) error {
	r.mu.Lock()
	r.left--
	r.news.Broadcast()
	r.mu.Unlock()
	p.cancel()
	return p.file.Close()
}
