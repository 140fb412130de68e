package convert

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

// some makes n members below model/, all with names of one pattern and one size.
func some(n int, pattern string, size int64) []carton.Member {
	members := make([]carton.Member, n)
	for i := range members {
		members[i] = carton.Member{Path: "model/" + fmt.Sprintf(pattern, i), Size: size}
	}
	return members
}

func join(lists ...[]carton.Member) (all []carton.Member) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func TestChooseBundling(t *testing.T) {
	for name, c := range map[string]struct {
		members []carton.Member
		below   int64
		want    bundling
		ok      bool
	}{
		"64 are all raw": {
			members: some(64, "%d.json", 1), want: bundling{bundle: bundleBytes}, ok: true,
		},
		"65 small ones are bundled": {
			members: some(65, "%d.json", 1), want: bundling{others: 4 << 10, bundle: bundleBytes}, ok: true,
		},
		"a size on the line is raw": {
			members: join(some(65, "%d.json", 1), some(64, "b%d.json", 4<<10)),
			want:    bundling{others: 4 << 10, bundle: bundleBytes}, ok: true,
		},
		"64 KiB": {
			members: some(65, "%d.json", 4<<10), want: bundling{others: 64 << 10, bundle: bundleBytes}, ok: true,
		},
		"1 MiB": {
			members: some(65, "%d.json", 64<<10), want: bundling{others: 1 << 20, bundle: bundleBytes}, ok: true,
		},
		"16 MiB": {
			members: some(65, "%d.json", 1<<20), want: bundling{others: 16 << 20, bundle: bundleBytes}, ok: true,
		},
		"no size is enough": {
			members: some(65, "%d.json", 1<<30), want: bundling{others: math.MaxInt64, bundle: bundleBytes}, ok: true,
		},
		"empty ones, weights, symlinks and carton.toml don't count": {
			members: join(some(64, "%d.json", 1), some(100, "e%d.json", 0), some(100, "%d.bin", 1),
				[]carton.Member{{Path: carton.InfoName, Size: 9}, {Path: "model/z", Target: "0.json", Size: 1}}),
			want: bundling{bundle: bundleBytes}, ok: true,
		},
		"many weights": {
			members: join(some(500, "%d.bin", 1), some(100, "b%d.bin", 4<<10)),
			want:    bundling{others: 4 << 10, weights: 4 << 10, bundle: bundleBytes}, ok: true,
		},
		"498 weights and MANIFEST and carton.toml": {
			members: join(some(498, "%d.bin", 1), []carton.Member{{Path: carton.InfoName, Size: 9}}),
			want:    bundling{bundle: bundleBytes}, ok: true,
		},
		"499 weights and MANIFEST and carton.toml": {
			members: join(some(499, "%d.bin", 1), []carton.Member{{Path: carton.InfoName, Size: 9}}),
			want:    bundling{others: 4 << 10, weights: 4 << 10, bundle: bundleBytes}, ok: true,
		},
		"the second ladder begins where the first ended": {
			members: join(some(65, "%d.json", 64<<10), some(600, "%d.bin", 1)),
			want:    bundling{others: 1 << 20, weights: 1 << 20, bundle: bundleBytes}, ok: true,
		},
		"too many bundles of 64 MiB": {
			members: some(1001, "%d.bin", 64<<20),
			want:    bundling{others: math.MaxInt64, weights: math.MaxInt64, bundle: 256 << 20}, ok: true,
		},
		"a line that is given": {
			members: some(400, "%d.json", 10), below: 10, want: bundling{others: 10, bundle: bundleBytes}, ok: true,
		},
		"a line that is given and one more": {
			members: some(400, "%d.json", 10), below: 11, want: bundling{others: 11, bundle: bundleBytes}, ok: true,
		},
		"a given line that is too low": {
			members: some(600, "%d.json", 10), below: 10, want: bundling{others: 10, bundle: bundleBytes}, ok: false,
		},
		"a negative line": {
			members: some(400, "%d.json", 1), below: -1, want: bundling{bundle: bundleBytes}, ok: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			opts := Options{Layers: FormRaw, MediaTypes: FamilyCNAI, Compress: CompressNone, BundleBelow: c.below}
			got, ok := newPlanner(c.members, &carton.Info{}, opts, nil).chooseBundling()
			if ok != c.ok {
				t.Errorf("got %v, want %v", ok, c.ok)
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(bundling{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
