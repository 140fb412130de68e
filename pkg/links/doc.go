// Package links follows LINKS: it reads the members that a thin carton leaves
// out from wherever they are, and verifies them like any other.
//
// [Resolve] makes a [carton.Source] with links into one without. A [Fetcher]
// reads one link; [NewFetcher] makes the one for links that strangers wrote,
// over HTTP, with the rules that it states. LINKS as a text is
// [carton.ParseLinks].
//
// Nothing that a host sends is believed before all of it had the hash that
// MANIFEST lists. No error and no event shows more of a URL than its host: the
// rest may hold a secret.
package links

import (
	"context"
	"fmt"
	"io"

	"github.com/carton-oci/carton-oci/internal/httprange"
	"github.com/carton-oci/carton-oci/internal/stall"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// Limits on what is read from hosts that LINKS names.
const (
	// MaxZstdWindow is the largest zstd window, in bytes, of a zstd
	// content-encoding over HTTP (RFC 9659).
	MaxZstdWindow = 8 << 20
	// MaxExpansion is how many times longer than what a host sent for it decoded
	// content may be, once it has 64 MiB.
	MaxExpansion = 100
)

// What an error of a link may wrap beside carton.ErrLink.
var (
	// ErrNotAllowed: a URL, redirect or address that a stranger's link may not lead to.
	ErrNotAllowed = httprange.ErrNotAllowed
	// ErrStalled: a host sent nothing, or too little, for too long.
	ErrStalled = stall.ErrStalled
)

// Link is one place where the content with Hash can be fetched.
type Link struct {
	Hash string // lower-case hex sha256 of the decoded content
	URL  string
}

// Fetcher reads the content of links. [NewFetcher] gives the one that obeys
// LINKS' rules over HTTP.
//
// An error that has a method Temporary() bool returning true means that
// another attempt may do better; the fetcher itself has retried already what
// is worth retrying at the same URL.
type Fetcher interface {
	// Size returns the size in bytes of the decoded content, -1 where the host
	// does not say without sending it.
	Size(ctx context.Context, link Link) (int64, error)
	// Open opens n bytes of the decoded content from offset off; n < 0 means to
	// the end. It verifies nothing: [Resolve] does.
	Open(ctx context.Context, link Link, off, n int64) (io.ReadCloser, error)
}

// errorf is the error of kind for what is wrong with the member at path, "" for a
// link whose member the caller names.
func errorf(kind error, path, format string, args ...any) error {
	return &carton.Error{Path: path, Kind: kind, Msg: fmt.Sprintf(format, args...)}
}
