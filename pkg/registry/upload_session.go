package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// An upload session is a URL of the registry that takes a blob's bytes. Every
// answer may name a new one, and only the newest is good.
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#pushing-blobs

type session struct {
	location string // "" where there is none
	minChunk int64  // no chunk but the last may be smaller
}

// openSession starts an upload, or takes over the one that a mount opened.
func (r *Repository) openSession(ctx context.Context, dgst digest.Digest) (session, error) {
	if s, ok := r.takeSession(dgst); ok {
		return s, nil
	}
	u, err := r.url(ctx, "blobs/uploads/")
	if err != nil {
		return session{}, err
	}
	resp, err := r.ask(r.push(ctx), http.MethodPost, u, nil)
	if err != nil {
		return session{}, err
	}
	if resp.StatusCode != http.StatusAccepted {
		return session{}, r.host.answerError(resp)
	}
	defer resp.Body.Close()
	return r.session(resp, u)
}

// session reads the answer that opens an upload.
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#pushing-a-blob-in-chunks
func (r *Repository) session(resp *http.Response, asked *url.URL) (session, error) {
	location, err := r.location(resp, asked)
	if err != nil {
		return session{}, err
	}
	minChunk, err := strconv.ParseInt(resp.Header.Get("OCI-Chunk-Min-Length"), 10, 64)
	if err != nil || minChunk < 0 {
		minChunk = 0
	}
	return session{location: location, minChunk: minChunk}, nil
}

// location returns the address that resp names for the rest of an upload.
func (r *Repository) location(resp *http.Response, asked *url.URL) (string, error) {
	value := resp.Header.Get("Location")
	if value == "" {
		return "", fmt.Errorf("%s names no place to upload to: %w", r.host.host, layout.ErrFormat)
	}
	loc, err := resp.Request.URL.Parse(value)
	if err != nil {
		return "", fmt.Errorf("%s names an unreadable place to upload to: %w", r.host.host, layout.ErrFormat)
	}
	return r.safeLocation(loc, asked)
}

// safeLocation returns an address for the rest of an upload, if that is one to
// send bytes and credentials to: on the registry's host, and not back from https
// to http.
func (r *Repository) safeLocation(loc, asked *url.URL) (string, error) {
	if asked.Scheme == "https" && loc.Scheme != "https" {
		return "", hint.With(unsafe("%s wants the upload to go on over %s", r.host.host, loc.Scheme),
			"a registry behind a TLS proxy has to know it: relativeurls, or X-Forwarded-Proto")
	}
	if asked.Port() == "443" && loc.Port() == "" && strings.EqualFold(loc.Hostname(), asked.Hostname()) {
		loc.Host = asked.Host // as some registries leave out what they were asked with
	}
	if !sameHost(loc, asked) || loc.Scheme != "https" && loc.Scheme != "http" {
		return "", hint.With(unsafe("%s wants the upload to go on at %s", r.host.host, loc.Host),
			"if that is the same registry, use the name that it goes by itself")
	}
	loc.User, loc.Fragment = nil, ""
	return loc.String(), nil
}

// keepSession remembers an upload for Push, and cancels one that it replaces.
func (r *Repository) keepSession(ctx context.Context, dgst digest.Digest, s session) {
	r.mu.Lock()
	old, ok := r.sessions[dgst]
	r.sessions[dgst] = s
	r.mu.Unlock()
	if ok {
		r.cancelSession(ctx, old.location)
	}
}

// takeSession returns the upload that keepSession remembers, once.
func (r *Repository) takeSession(dgst digest.Digest) (session, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.sessions[dgst]
	delete(r.sessions, dgst)
	return s, ok
}

// cancelSession tells the registry that nothing more will come. It works on a
// ctx that is done, is not worth waiting long for, and may fail.
func (r *Repository) cancelSession(ctx context.Context, location string) {
	u, err := url.Parse(location)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(cancelTimeout, r.client.opts.stall()))
	defer cancel()
	if resp, err := r.ask(r.push(ctx), http.MethodDelete, u, nil); err == nil {
		resp.Body.Close()
	}
}

const cancelTimeout = 5 * time.Second

// errGone: an upload that the registry does not know, or not enough of.
var errGone = errors.New("upload is gone")

// status asks how much of an upload the registry has, in bytes, and where to
// go on. An upload that can't be continued is errGone: one of which the
// registry has nothing, or more than was sent.
func (r *Repository) status(ctx context.Context, location string, sent int64) (off int64, newer string, err error) {
	u, err := url.Parse(location)
	if err != nil {
		return 0, "", err
	}
	resp, err := r.ask(r.push(ctx), http.MethodGet, u, nil)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusNoContent, http.StatusOK, http.StatusAccepted:
	case http.StatusUnauthorized, http.StatusForbidden:
		return 0, "", r.host.answerError(resp)
	default:
		return 0, "", errGone
	}
	off, ok := parseStatusRange(resp.Header.Get("Range"))
	if off == sent+1 {
		off = sent // an end that is off by one
	}
	if !ok || off <= 0 || off > sent {
		return 0, "", errGone
	}
	if newer, err = r.nextLocation(resp, location); err != nil {
		return 0, "", err
	}
	return off, newer, nil
}

// parseStatusRange reads the Range of an upload's status and returns how many
// bytes the registry has. "0-N" means N+1 of them, but "0-0" none: registries
// write it for an empty upload, and nobody sends a single byte. Quay's
// "bytes=0-N" means N.
func parseStatusRange(s string) (int64, bool) {
	s, quay := strings.CutPrefix(strings.TrimSpace(s), "bytes=")
	first, last, ok := strings.Cut(s, "-")
	if !ok || first != "0" {
		return 0, false
	}
	n, err := strconv.ParseInt(last, 10, 64)
	if err != nil || n < 0 || last[0] == '+' {
		return 0, quay && last == "-1"
	}
	if n > 0 && !quay {
		n++
	}
	if n < 0 {
		return 0, false
	}
	return n, true
}
