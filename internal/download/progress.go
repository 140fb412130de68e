package download

import (
	"sync"
	"time"

	"github.com/carton-oci/carton-oci/pkg/progress"
)

// often is the least time between two reports that one part has moved.
const often = 100 * time.Millisecond

// reporter tells how far a part is. Done never falls but with Retrying.
type reporter struct {
	report progress.Func
	name   string
	total  int64

	mu   sync.Mutex
	done int64     // bytes that are there
	said int64     // of Done in the last report
	last time.Time // of the last report that it moved
}

func (m *reporter) say(s progress.State, done int64, err error) {
	m.said = done
	m.report.Report(progress.Event{Name: m.name, State: s, Done: done, Total: m.total, Err: err})
}

// begin tells that the part is begun, with what is there of an earlier run.
func (m *reporter) begin(resumed int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.say(progress.Started, 0, nil)
	if m.done = resumed; resumed > 0 {
		m.say(progress.Resumed, resumed, nil)
	}
}

// add counts bytes that have arrived, and tells now and then.
func (m *reporter) add(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done += n
	if m.done <= m.said || m.total >= 0 && m.said == m.total {
		return
	}
	now := time.Now()
	if now.Sub(m.last) < often {
		return
	}
	m.last = now
	m.say(progress.Moving, m.cap(), nil)
}

// cap returns what is done, at most all: bytes that were lost come twice.
func (m *reporter) cap() int64 {
	if m.total >= 0 {
		return min(m.done, m.total)
	}
	return m.done
}

// back takes back bytes that have to come again.
func (m *reporter) back(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done -= n
}

// restart makes it none.
func (m *reporter) restart() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done, m.said = 0, 0
}

// retry tells of an attempt that failed and that another follows.
func (m *reporter) retry(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.say(progress.Retrying, m.cap(), err)
}

// finish tells that all is there and verified.
func (m *reporter) finish(size int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.say(progress.Finished, size, nil)
}
