package client

import (
	"context"
	"iter"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/registry"
)

// lateTags is a store that lists its tags to nobody the first time.
type lateTags struct {
	layout.Store
	asked   int
	deleted []string
}

func (s *lateTags) Tags(context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if s.asked++; s.asked == 1 {
			yield("", registry.ErrDenied)
		}
	}
}

func (s *lateTags) Delete(_ context.Context, reference string, _ layout.DeleteOptions) error {
	s.deleted = append(s.deleted, reference)
	return nil
}

// Where the tags of a manifest are learnt only when they are asked for again, and there
// are none, it is deleted as any other.
func TestDeleteAsksForTagsAgain(t *testing.T) {
	target := inMemory()
	pushed := pushTo(t, target, "h.io/m:1", sample())
	store := &lateTags{Store: layout.FromTarget(target)}
	c := fresh(Options{Repository: func(context.Context, string, string) (layout.Store, error) { return store, nil }})
	result, err := c.Delete(t.Context(), "h.io/m@"+pushed.Digest.String(), DeleteOptions{})
	if err != nil || result == nil || !result.Manifest || len(store.deleted) != 1 || store.deleted[0] != pushed.Digest.String() {
		t.Errorf("got %+v, %v, deleted %v", result, err, store.deleted)
	}
}
