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
	// maxImageLayers is the most layers of an image and of the artifact that shares
	// them: what every container runtime mounts. Docker refuses more than 125,
	// containerd came to some 400 layers of one overlay.
	maxImageLayers = 120
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
	// roles are those of the members.
	roles roles
}

// alone reports whether m, no symlink, gets a layer of its own.
func (c cut) alone(m *carton.Member) bool {
	switch {
	case m.Size == 0:
		return false
	case m.Path == carton.InfoName:
		return true
	case c.roles.of(m.Path, m.Size) == categoryWeight:
		return m.Size >= c.weights
	}
	return m.Size >= c.others
}

// chooseCut draws the line. layers counts the layers that a cut would give; most
// is how many there may be.
//
// The line for members that are no weights is the first at which at most 64 of
// them are raw, or bundleBelow where that is above 0 (below 0 it is 0). Where
// that gives too many layers, the line is drawn through the weights too, and both
// go up the ladder together until it does not; should bundles alone be too many,
// they are let grow to twice their size until they are not. Where most is that of
// an image, members larger than the ladder are common: the end of the ladder, ∞,
// is left out, and line and bundles grow as one, so that the largest stay alone.
// With bundleBelow set, too many layers are too many.
func chooseCut(members []carton.Member, r roles, bundleBelow int64, most int, layers func(cut) int) (c cut, ok bool) {
	c = cut{bundle: bundleBytes, roles: r}
	switch {
	case bundleBelow < 0:
		return c, layers(c) <= most
	case bundleBelow > 0:
		c.others = bundleBelow
		return c, layers(c) <= most
	}
	at := 0
	for ; c.rawOthers(members) > maxRawOthers; c.others = lines[at] {
		at++
	}
	if layers(c) <= most {
		return c, true
	}
	for ; at < len(lines); at++ {
		if most <= maxImageLayers && lines[at] == math.MaxInt64 {
			return growTogether(most, r, layers)
		}
		c.others, c.weights = lines[at], lines[at]
		if layers(c) <= most {
			return c, true
		}
	}
	for c.bundle <= math.MaxInt64/2 {
		c.bundle *= 2
		if layers(c) <= most {
			return c, true
		}
	}
	return c, false
}

// growTogether makes members of a size and more stand alone, and bundles of all
// others that hold no more than that size: 64 MiB first, and a quarter more, in
// whole MiB, each time until the layers are few enough.
func growTogether(most int, r roles, layers func(cut) int) (c cut, ok bool) {
	for size := int64(bundleBytes); size <= math.MaxInt64/2; size += size / 4 >> 20 << 20 {
		c = cut{others: size, weights: size, bundle: size, roles: r}
		if layers(c) <= most {
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
		if m.Target == "" && m.Path != carton.InfoName && c.roles.of(m.Path, m.Size) != categoryWeight && c.alone(m) {
			n++
		}
	}
	return n
}
