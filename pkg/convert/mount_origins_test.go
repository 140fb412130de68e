package convert

import (
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
)

func TestWhatHasEveryLinkMayHaveTheRest(t *testing.T) {
	one, two, rest := strings.Repeat("1", 64), strings.Repeat("2", 64), strings.Repeat("3", 64)
	blob := func(repo, hash string) string { return "https://r.example/v2/" + repo + "/blobs/sha256:" + hash }
	all, some := layout.Origin{Registry: "r.example", Repository: "all"}, layout.Origin{Registry: "r.example", Repository: "some"}
	tests := map[string]struct {
		urls map[string][]string
		want map[string][]layout.Origin
	}{
		"one repository has all": {
			map[string][]string{one: {blob("some", one), blob("all", one)}, two: {blob("all", two), "https://hub.example/file"}},
			map[string][]layout.Origin{one: {some, all}, two: {all}, rest: {all}},
		},
		"none has all": {
			map[string][]string{one: {blob("some", one)}, two: {blob("all", two)}},
			map[string][]layout.Origin{one: {some}, two: {all}, rest: nil},
		},
		"not allowed": {
			map[string][]string{one: {blob("private", one), blob("all", one)}, two: {blob("private", two)}},
			map[string][]layout.Origin{one: {all}, two: nil, rest: nil},
		},
		"Docker Hub": {
			map[string][]string{one: {"https://registry-1.docker.io/v2/o/m/blobs/sha256:" + one}},
			map[string][]layout.Origin{one: {{Registry: "docker.io", Repository: "o/m"}}},
		},
		"no registry at all": {
			map[string][]string{one: {"https://hub.example/file"}},
			map[string][]layout.Origin{one: nil, rest: nil},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			src := cartontest.New(nil, nil, cartontest.WithLinks(&carton.Links{URLs: tt.urls}))
			origins := originsOf(src, []layout.Origin{all, some, {Registry: "docker.io", Repository: "o/m"}})
			for hash, want := range tt.want {
				got := origins(digest.NewDigestFromEncoded(digest.SHA256, hash))
				if len(got)+len(want) > 0 && !cmp.Equal(got, want) {
					t.Errorf("%s…: got %v, want %v", hash[:4], got, want)
				}
			}
		})
	}
}
