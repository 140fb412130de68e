// Package registry is the remote place: a repository of an OCI registry as a
// layout.Store.
//
// # Rules that this package keeps
//
// Blobs travel here, manifests through oras-go. Uploads climb one ladder: HEAD,
// mount, PUT with a body that can be opened again at any offset; after a failure
// the session's status and the tail; then a new session. Downloads ask for
// ranges, check what they were given, and continue where they broke off.
//
// Credentials go to the host they belong to: not along a redirect, not to a
// token server that the registry's answer had no right to name, not into an
// error or a log.
//
// Blobs use HTTP/1.1 connections, metadata HTTP/2 where the registry has it: one
// multiplexed connection is several times slower over a long distance.
//
// What may pass is retried: broken connections, 408, 429 and 5xx, with
// Retry-After honoured up to a limit. 400, 401, 403, 404 and wrong digests are
// not.
//
// Specification:
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md
package registry
