package convert

import (
	"fmt"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// Lists that would make an image manifest that no registry takes are left out,
// all of them.
func TestLongListsAreLeftOut(t *testing.T) {
	testenv.Heavy(t)
	const n = 110_000
	entries := make([]carton.Entry, n)
	members := make([]*carton.Member, n)
	for i := range entries {
		entries[i] = carton.Entry{Path: fmt.Sprintf("model/%06d.py", i), Hash: strings.Repeat("0", 64)}
		members[i] = &carton.Member{Path: entries[i].Path, Size: 1e18}
	}
	m, err := carton.NewManifest(entries)
	if err != nil {
		t.Fatal(err)
	}
	plan := []*layer{
		{format: formatTar, members: members[:10]},
		{format: formatRaw, members: members[:1]},
		{format: formatTarZstd, members: members[10:]},
	}
	for i, list := range memberLists(m, plan) {
		if list != "" {
			t.Errorf("layer %d has a list of %d bytes", i, len(list))
		}
	}
	plan[2].members = members[10:100_000]
	lists := memberLists(m, plan)
	if lists[0] == "" || lists[1] != "" || lists[2] == "" {
		t.Errorf("shorter lists: got %d, %d and %d bytes, want two that are not empty", len(lists[0]), len(lists[1]), len(lists[2]))
	}
}

// An artifact without lists is read all the same.
func TestArtifactsWithoutLists(t *testing.T) {
	for _, c := range []Compression{CompressNone, CompressGzip} {
		s, desc := changed(t, Options{BundleBelow: 10_000, Compress: c}, func(_ *shelf, m *ocispec.Manifest) {
			for i := range m.Layers {
				delete(m.Layers[i].Annotations, AnnotationMembers)
			}
		})
		if err := readAll(t, s, desc, OpenOptions{}); err != nil {
			t.Errorf("%s: %v", c, err)
		}
	}
}
