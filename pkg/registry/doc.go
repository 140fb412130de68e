// Package registry is the remote place: a repository of an OCI registry as a
// layout.Store.
//
// # Rules that this package keeps
//
// Uploads climb one ladder: HEAD, mount, PUT with a body that can be opened again
// at any offset; after a failure the session's status and the tail; then a new
// session. Every byte is hashed as it leaves, and the last are withheld until
// the digest is right: a wrong blob is never completed. Downloads ask for ranges,
// check what they were given, and continue where they broke off; each request
// goes to the registry itself, for what it redirects to may expire.
//
// Credentials go to the host they belong to. oras-go's auth client handles
// challenges and tokens: it drops credentials as soon as a redirect leaves the
// origin, and asks no token server that the registry's answer had no right to
// name. On top of that no redirect leads from https to http, no body follows one
// to another host, and an upload goes on nowhere but on the registry's own host.
// No error holds a secret, a query or a control character.
//
// Blobs use HTTP/1.1 connections, metadata HTTP/2 where the registry has it: one
// multiplexed connection is several times slower over a long distance.
//
// What may pass is retried: broken connections, stalls, 408, 429 and 5xx, with
// Retry-After honoured up to a limit ([Policy]). 400, 401, 403, 404 and wrong
// digests are not, and no host that never answered. What a source of bytes fails
// with is its caller's to try again.
//
// A host that is not loopback is reached over TLS, or fails. A loopback host is
// asked once, without credentials, whether it speaks TLS.
//
// Specification:
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md
package registry
