package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/url"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// tagsAtOnce is how many tags are asked for at once; registries may give fewer.
const tagsAtOnce = "1000"

// Tags implements [layout.Fetcher]. A page is asked for when the one before is used up.
func (r *Repository) Tags(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		n, stopped := 0, false
		err := r.pages(ctx, "tags/list", url.Values{"n": {tagsAtOnce}}, nil, func(p page) (bool, error) {
			err := eachTag(p.body, func(tag string) (bool, error) {
				if n++; n > layout.MaxTags {
					return false, fmt.Errorf("more than %d tags: %w", layout.MaxTags, layout.ErrLimit)
				}
				if CheckTag(tag) != nil {
					return false, fmt.Errorf("%s is no tag: %w", errtext.Quoted(tag), layout.ErrFormat)
				}
				stopped = !yield(tag, nil)
				return !stopped, nil
			})
			return !stopped, err
		})
		if err != nil && !stopped {
			yield("", fmt.Errorf("list tags: %w", err))
		}
	}
}

// eachTag reads an answer with tags, one by one: a registry that knows no pages may
// give a million.
func eachTag(body []byte, give func(tag string) (more bool, err error)) error {
	var list struct {
		Tags tagArray `json:"tags"`
	}
	list.Tags.give = give
	if err := json.Unmarshal(body, &list); err != nil {
		return fmt.Errorf("got no list of tags: %w: %w", layout.ErrFormat, err)
	}
	return list.Tags.err
}

// tagArray is an array of tags that is read one by one.
type tagArray struct {
	give func(tag string) (bool, error)
	done bool
	err  error
}

// UnmarshalJSON gives the tags away; null is none.
func (a *tagArray) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, []byte("null")) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return fmt.Errorf("got %v, want an array", t)
	}
	for d.More() && !a.done {
		var tag string
		if err := d.Decode(&tag); err != nil {
			return err
		}
		more, err := a.give(tag)
		a.done, a.err = !more || err != nil, err
	}
	return nil
}
