package client

import (
	"context"
	"iter"

	"github.com/carton-oci/carton-oci/pkg/location"
)

// Tags lists the tags of a repository or an image layout, as [layout.Fetcher] does.
// Which artifact ref names counts for nothing. An error ends the list.
func (c *Client) Tags(ctx context.Context, ref string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		loc, err := location.Parse(ref)
		if err != nil {
			yield("", err)
			return
		}
		s, err := c.site(ctx, loc, reading)
		if err != nil {
			yield("", err)
			return
		}
		for tag, err := range s.store.Tags(ctx) {
			if !yield(tag, err) || err != nil {
				return
			}
		}
	}
}
