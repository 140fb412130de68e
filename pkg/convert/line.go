package convert

import (
	"math"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

// The numbers of the line.
const (
	// maxRawOthers is the most members that are no weights and are raw.
	maxRawOthers = 64
	// maxLayers is the most layers of an artifact.
	maxLayers = 500
	// bundleBytes closes a bundle before its members' content passes it, in bytes,
	// so that a changed file re-sends its neighbours and no more.
	bundleBytes = 64 << 20
)

// lines are the sizes in bytes that the line may have. A member is bundled if it
// is smaller than the line; all are below the last.
var lines = []int64{0, 4 << 10, 64 << 10, 1 << 20, 16 << 20, math.MaxInt64}

// cut says which members get a layer of their own: those that are not empty
// (not every registry takes an empty blob) and not smaller than the line.
type cut struct {
	// others is the line for members that are no weights.
	others int64
	// weights is the line for weights: 0, unless they alone are too many layers.
	weights int64
	// bundle is what a bundle holds at most, in bytes of content.
	bundle int64
}

// alone reports whether m, no symlink, gets a layer of its own.
func (c cut) alone(m *carton.Member) bool {
	switch {
	case m.Size == 0:
		return false
	case m.Path == carton.InfoName:
		return true
	case isWeight(m.Path, m.Size):
		return m.Size >= c.weights
	}
	return m.Size >= c.others
}

// chooseCut draws the line. layers counts the layers that a cut would give.
//
// The line for members that are no weights is the first at which at most 64 of
// them are raw, or bundleBelow where that is above 0 (below 0 it is 0). Where
// that gives more than 500 layers, the line is drawn through the weights too,
// and both go up the ladder together until it does not; should bundles alone be
// more than 500, they are let grow to twice their size until they are not. With
// bundleBelow set, too many layers are too many.
func chooseCut(members []carton.Member, bundleBelow int64, layers func(cut) int) (c cut, ok bool) {
	c = cut{bundle: bundleBytes}
	switch {
	case bundleBelow < 0:
		return c, layers(c) <= maxLayers
	case bundleBelow > 0:
		c.others = bundleBelow
		return c, layers(c) <= maxLayers
	}
	at := 0
	for ; c.rawOthers(members) > maxRawOthers; c.others = lines[at] {
		at++
	}
	if layers(c) <= maxLayers {
		return c, true
	}
	for ; at < len(lines); at++ {
		c.others, c.weights = lines[at], lines[at]
		if layers(c) <= maxLayers {
			return c, true
		}
	}
	for c.bundle <= math.MaxInt64/2 {
		c.bundle *= 2
		if layers(c) <= maxLayers {
			return c, true
		}
	}
	return c, false
}

// rawOthers counts the members that are no weights and would be raw. Symlinks,
// MANIFEST and carton.toml don't count.
func (c cut) rawOthers(members []carton.Member) int {
	n := 0
	for i := range members {
		m := &members[i]
		if m.Target == "" && m.Path != carton.InfoName && !isWeight(m.Path, m.Size) && c.alone(m) {
			n++
		}
	}
	return n
}
