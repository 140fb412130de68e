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

// bundling says which members get a layer of their own: those that are not empty
// (not every registry takes an empty blob) and not smaller than the line.
type bundling struct {
	// others is the line for members that are no weights.
	others int64
	// weights is the line for weights: 0, unless they alone are too many layers.
	weights int64
	// bundle is what a bundle holds at most, in bytes of content.
	bundle int64
}

// alone reports whether m, no symlink, gets a layer of its own.
func (p *planner) alone(b bundling, m *carton.Member) bool {
	switch {
	case m.Size == 0:
		return false
	case m.Path == carton.InfoName:
		return true
	case p.roles.of(m.Path, m.Size) == categoryWeight:
		return m.Size >= b.weights
	}
	return m.Size >= b.others
}

// chooseBundling draws the line, so that there are at most so many layers as the
// options allow; ok is false where they are more all the same.
//
// The line for members that are no weights is the first at which at most 64 of
// them are raw, or BundleBelow where that is above 0 (below 0 it is 0). Where
// that gives too many layers, the line is drawn through the weights too, and both
// go up the ladder together until it does not; should bundles alone be too many,
// they are let grow to twice their size until they are not. Where there may be as
// many layers as an image has, members larger than the ladder are common: the end of
// the ladder, ∞, is left out, and line and bundles grow as one, so that the largest
// stay alone. With BundleBelow set, too many layers are too many.
func (p *planner) chooseBundling() (b bundling, ok bool) {
	b = bundling{bundle: bundleBytes, others: max(p.opts.BundleBelow, 0)}
	if p.opts.BundleBelow != 0 {
		return b, p.fewEnough(b)
	}
	at := 0
	for ; p.rawOthers(b) > maxRawOthers; b.others = lines[at] {
		at++
	}
	if p.fewEnough(b) {
		return b, true
	}
	for ; at < len(lines); at++ {
		if p.opts.maxLayers() <= maxImageLayers && lines[at] == math.MaxInt64 {
			return p.growTogether()
		}
		b.others, b.weights = lines[at], lines[at]
		if p.fewEnough(b) {
			return b, true
		}
	}
	for b.bundle <= math.MaxInt64/2 {
		b.bundle *= 2
		if p.fewEnough(b) {
			return b, true
		}
	}
	return b, false
}

// growTogether makes members of a size and more stand alone, and bundles of all
// others that hold no more than that size: 64 MiB first, and a quarter more, in
// whole MiB, each time until the layers are few enough.
func (p *planner) growTogether() (b bundling, ok bool) {
	for size := int64(bundleBytes); size <= math.MaxInt64/2; size += size / 4 >> 20 << 20 {
		b = bundling{others: size, weights: size, bundle: size}
		if p.fewEnough(b) {
			return b, true
		}
	}
	return b, false
}

// fewEnough reports whether a bundling makes as few layers as there may be.
func (p *planner) fewEnough(b bundling) bool {
	return len(p.layersFor(b))+len(p.extras) <= p.opts.maxLayers()
}

// rawOthers counts the members that are no weights and would be raw. Symlinks,
// MANIFEST and carton.toml don't count.
func (p *planner) rawOthers(b bundling) int {
	n := 0
	for i := range p.members {
		m := &p.members[i]
		weight := p.roles.of(m.Path, m.Size) == categoryWeight
		if m.Target == "" && m.Path != carton.InfoName && !weight && p.alone(b, m) {
			n++
		}
	}
	return n
}
