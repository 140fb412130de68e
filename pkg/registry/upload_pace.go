package registry

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// What is said of an upload's time is said of fractions of the limit.
const (
	leastMeasure = 20 // nothing is said of less than a twentieth of the limit
	longMeasure  = 10 // and no bytes count that went out more than a tenth ago
	sampleEvery  = 600
	slackPercent = 10 // over the limit by so much before anything is said

	longest = 100 * 365 * 24 * time.Hour // that is shown
)

// meter measures how fast bytes go to a registry that ends uploads after some
// time, and says of each upload whether it can be through before.
type meter struct {
	mu      sync.Mutex
	total   int64
	samples []sample // of the last tenth of the limit, the oldest first
	active  map[*pace]struct{}
}

type sample struct {
	at    time.Time
	total int64
}

// pace is one request with a blob's bytes. A nil pace has no limit.
type pace struct {
	meter *meter
	limit time.Duration
	host  string
	start time.Time
	heard time.Time // when it was last judged
	left  int64     // bytes to send
}

// start begins to measure a request that sends so many bytes.
func (m *meter) start(b *behaviour, now time.Time, bytes int64) *pace {
	if b.upload == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.active) == 0 { // what was before says nothing of now
		m.active, m.samples = make(map[*pace]struct{}), []sample{{now, m.total}}
	}
	p := &pace{meter: m, limit: b.upload, host: b.name, start: now, heard: now, left: bytes}
	m.active[p] = struct{}{}
	return p
}

// end is called when the request is over.
func (p *pace) end() {
	if p == nil {
		return
	}
	p.meter.mu.Lock()
	defer p.meter.mu.Unlock()
	delete(p.meter.active, p)
}

// sent is told that n bytes went out. Its error says that the rest can't follow
// before the limit strikes.
func (p *pace) sent(n int, now time.Time) error {
	if p == nil {
		return nil
	}
	m := p.meter
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total += int64(n)
	p.left -= int64(n)
	every := p.limit / sampleEvery
	if now.Sub(p.heard) < every {
		return nil
	}
	p.heard = now
	if now.Sub(m.samples[len(m.samples)-1].at) >= every {
		m.samples = append(m.samples, sample{now, m.total})
	}
	for len(m.samples) > 2 && now.Sub(m.samples[1].at) >= p.limit/longMeasure {
		m.samples = m.samples[1:]
	}
	return p.judge(now)
}

// judge holds what is left against the rate. Uploads at one time share it
// evenly: one has its turn when those with less to send are through and those
// with more got as much as it. What may yet begin is left out, and so the
// projection is never too long for that.
func (p *pace) judge(now time.Time) error {
	m, first := p.meter, p.meter.samples[0]
	span, elapsed := now.Sub(first.at), now.Sub(p.start)
	bytes := m.total - first.total
	if least := p.limit / leastMeasure; span < least || elapsed < least || bytes == 0 {
		return nil
	}
	var ahead int64
	for other := range m.active {
		ahead = saturated(ahead, min(other.left, p.left))
	}
	rate := float64(bytes) / span.Seconds()
	needs := elapsed.Seconds() + float64(ahead)/rate
	if needs <= p.limit.Seconds()*(100+slackPercent)/100 {
		return nil
	}
	err := &slowError{
		text: fmt.Sprintf("%s are left of it and %d other uploads at %s/s: got a need of %s in all, want at most %s "+
			"an upload (%s)",
			errtext.Size(ahead), len(m.active)-1, errtext.Size(int64(rate)), roughly(needs), p.limit, p.host),
	}
	alone := elapsed.Seconds() + float64(p.left)/rate
	if len(m.active) > 1 && alone <= p.limit.Seconds() {
		return hint.With(err, "%s 1 sends one after the other, each with the whole rate", hint.Concurrency)
	}
	return hint.With(err, "use a faster line or another registry, or split the file: weights can be several files")
}

// slowError: an upload that its registry would end before it is through.
type slowError struct{ text string }

func (e *slowError) Error() string { return e.text }
func (*slowError) Unwrap() error   { return layout.ErrLimit }
func (*slowError) Retryable() bool { return false }

// saturated adds sizes that a stranger named.
func saturated(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// roughly returns a number of seconds for people.
func roughly(seconds float64) time.Duration {
	d := time.Duration(min(seconds, longest.Seconds()) * float64(time.Second))
	if d > time.Minute {
		return d.Round(time.Second)
	}
	return d.Round(time.Millisecond)
}
