package stall

import "time"

const (
	// Floor is the least progress that counts as such, in bytes a second averaged
	// over the stall time.
	Floor = 512
	// DefaultLimit is the stall time where the caller names none.
	DefaultLimit = 30 * time.Second
)

// Meter tells progress from a drip across the attempts of one transfer. Its zero
// value is ready.
type Meter struct {
	got    int64
	waited time.Duration
}

// Add notes that n bytes came after so much waiting, which includes that for
// headers and between attempts.
func (m *Meter) Add(n int, waited time.Duration) {
	m.got += int64(n)
	m.waited += waited
}

// Progressed reports whether bytes came since it was asked last, and not slower
// than [Floor].
func (m *Meter) Progressed() bool {
	yes := m.got > 0 && float64(m.got) >= Floor*m.waited.Seconds()
	*m = Meter{}
	return yes
}
