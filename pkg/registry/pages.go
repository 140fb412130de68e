package registry

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/carton-oci/carton-oci/internal/httprange"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

const (
	// maxPageBytes is the largest page of a list: all tags of a large repository in one,
	// from a registry that knows no pages.
	maxPageBytes = 32 << 20
	// maxListBytes is how much all pages of a list of referrers may have.
	maxListBytes = 64 << 20
)

// maxPages is the most pages of a list; tests have fewer.
var maxPages = 10_000

// page is an answer with a part of a list.
type page struct {
	body []byte
	resp *http.Response
}

// pages asks for a list page by page, and gives each to take until that wants no more.
// Where the next one is, a registry says in a Link header (RFC 8288), of which the query
// counts alone: no answer leads to another host, nor to another path.
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#listing-tags
func (r *Repository) pages(
	ctx context.Context, path string, query url.Values, header http.Header, take func(page) (more bool, err error),
) error {
	u, err := r.urlWith("", path)
	if err != nil {
		return err
	}
	u.RawQuery = query.Encode()
	asked := map[string]bool{}
	for len(asked) < maxPages {
		asked[u.RawQuery] = true
		p, err := read(ctx, r, func(ctx context.Context) (p page, err error) {
			p.resp, p.body, err = r.get(ctx, u, header, maxPageBytes)
			return p, err
		})
		if err != nil {
			return err
		}
		more, err := take(p)
		if !more || err != nil {
			return err
		}
		next, ok := httprange.NextPage(p.resp.Header)
		if !ok {
			return nil
		}
		if asked[next] {
			return fmt.Errorf("%s names a page that was read as the next one: %w", r.host.host, layout.ErrFormat)
		}
		u.RawQuery = next
	}
	return fmt.Errorf("%s has a list of more than %d pages: %w", r.host.host, maxPages, layout.ErrLimit)
}
