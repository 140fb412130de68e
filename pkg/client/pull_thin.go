package client

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/carton-oci/carton-oci/internal/secret"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/location"
)

// checkLinkBase refuses a base for links that holds a secret, which would be in
// every copy of the carton, or that HASH can't be put behind.
func checkLinkBase(base string) error {
	if base == "" {
		return nil
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return location.Errorf(base, "links need a base like https://host/path")
	}
	if what := secret.Of(u); what != "" {
		err := location.Errorf(base, "the base for links has %s: LINKS is for everybody", what)
		return hint.With(err, "name a server that needs no password")
	}
	if strings.ContainsAny(base, "?#") {
		return location.Errorf(base, "links end in a hash, and their base can't have a query or a fragment")
	}
	return nil
}

// thinLinks says where the members that a thin carton leaves out are.
func thinLinks(ctx context.Context, src *opened, base string) (*carton.Links, error) {
	if src.artifact == nil {
		err := fmt.Errorf("thin: %s is no artifact, want one whose layers can be linked", src.loc.Redacted())
		return nil, hint.With(err, "push it, and pull %s what was pushed", hint.Thin)
	}
	url := src.site.store.BlobURL
	switch {
	case base != "":
		url = func(d digest.Digest) string { return strings.TrimRight(base, "/") + "/" + d.Encoded() }
	case url(src.artifact.Descriptor().Digest) == "":
		err := fmt.Errorf("thin: %s has no address that links could name", src.loc)
		return nil, hint.With(err, "%s https://HOST/PATH names a server that has every file as PATH/HASH",
			hint.LinkBase)
	}
	return convert.ThinLinks(ctx, src.artifact, url)
}

// anybodyCanRead asks for one of the links as a loader would: without
// credentials.
func (c *call) anybodyCanRead(ctx context.Context, links *carton.Links) bool {
	for _, urls := range links.URLs {
		web, err := c.web()
		if err != nil {
			return false
		}
		r, err := web.Open(ctx, getURL(urls[0]), 0, 1, -1)
		if err != nil {
			return false
		}
		r.Close()
		break
	}
	return true
}
