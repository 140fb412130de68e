package main

import (
	"time"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

// rateOver is the time that a rate is measured over: long enough to be calm, and
// short enough to follow a line that changes.
const rateOver = 10 * time.Second

// meter measures how fast bytes move.
type meter struct{ samples []sample }

type sample struct {
	at    time.Time
	moved int64
}

// rate takes one more sample, and returns bytes a second; 0 is not known yet.
func (m *meter) rate(now time.Time, moved int64) float64 {
	m.samples = append(m.samples, sample{now, moved})
	for len(m.samples) > 2 && now.Sub(m.samples[1].at) >= rateOver {
		m.samples = m.samples[1:]
	}
	first := m.samples[0]
	seconds := now.Sub(first.at).Seconds()
	if seconds <= 0 {
		return 0
	}
	return float64(moved-first.moved) / seconds
}

// speed writes a rate: "120 MB/s"; "" while it is not known.
func speed(rate float64) string {
	if rate < 1 {
		return ""
	}
	return errtext.Size(int64(rate)) + "/s"
}

// timeLeft writes how long what is left takes at a rate: "8s left"; "" while that
// is not known.
func timeLeft(done, total int64, rate float64) string {
	left := total - done
	if rate < 1 || left <= 0 {
		return ""
	}
	seconds := min(float64(left)/rate, 1e8)
	return (time.Duration(seconds) * time.Second).String() + " left"
}
