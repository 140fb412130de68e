// Package registry is the remote place: a repository of an OCI registry as a
// layout.Store.
//
// # Rules that this package keeps
//
// An upload asks for the blob (HEAD), mounts it, and else sends it in one PUT, whose
// body can be opened again at any offset; after a failure it asks the session's status
// and sends the tail. It turns to chunks where they are asked for, or a blob is refused
// in one piece (413), or its connection is reset time after time before anything
// arrives; to one piece again, where chunks are refused; and then to a new session
// (upload_strategy.go). The newest Location counts. A chunk is never a
// single byte, nor shorter than OCI-Chunk-Min-Length, and is streamed. What the
// Range of a session says is believed where it can be: an end that is off by one
// is forgiven, one that does not move is not asked for again, and the digest has
// the last word.
//
// Every byte is hashed as it leaves, and the last are withheld until the digest is
// right: a wrong blob is never completed. What goes on in the middle is read and
// hashed from the last place where the state of the hash is known, in another
// process, too; it is not sent again. Where that state leads to another digest, what
// was sent before is given up.
//
// With [Options] StateDir uploads of 4 MiB and more survive their process. One
// file an upload, mode 0600 in a folder of mode 0700, named by a hash of registry,
// repository and digest, says where the session is: no credentials, nothing that
// is believed without asking the registry, and nothing that leads to another host.
// It is written when a session begins, when its address changes, and every few MiB with
// the state of the hash; it is locked
// while an upload goes on, and whoever finds it locked sends through a session of
// its own. It stays when the network, the process, the login, or a source that gives
// no answer ends an upload,
// and goes when the blob is complete, the source is wrong, the registry knows the
// session no more, or after a week.
// What is remembered is believed as far as the registry says so too: an address is
// used where it is one of this repository's uploads at this registry, and cancelled
// only once the registry has called it an upload. Only files that this package has
// made are read, written or removed: by their name and how they begin, the caller's
// own, with one name and for nobody else, in a folder that is no symlink and that
// nobody else may write to.
//
// What hosted registries are known for is one table, with its sources
// (limits.go). Sizes and counts are held against it before a byte is sent
// (CheckArtifact); where the time of an upload is limited, the rate so
// far is too, once there was enough of it to judge.
//
// Downloads ask for ranges, check what they were given, and continue where they
// broke off; each request goes to the registry itself, for what it redirects to
// may expire.
//
// Credentials go to the host they belong to. oras-go's auth client handles
// challenges and tokens: it drops credentials as soon as a redirect leaves the
// origin, and asks no token server that the registry's answer had no right to
// name. On top of that no redirect leads from https to http, no body follows one
// to another host, and an upload goes on nowhere but on the registry's own host.
// No request has a Referer. No error holds a query, a control character, or a
// secret, not even one that the registry repeats (internal/secret).
//
// Hosts that an answer names are connected to under a guard, which sees the
// address and not the name (transport.go). A token server on another host than the
// registry's needs TLS and a public address. A redirect leads to this machine, to
// link-local addresses and to the metadata services of clouds only from a
// registry that is there itself. Behind a proxy, which connects, literal addresses
// are judged alone; a proxy that the environment names unreadably is an error.
//
// Blobs use HTTP/1.1 connections, metadata HTTP/2 where the registry has it: one
// multiplexed connection is several times slower over a long distance. A few bytes
// of a blob come over the connection for metadata, which is there already.
//
// What may pass is retried: broken connections, stalls, 408, 429 and 5xx, with
// Retry-After honoured up to a limit ([Policy]). 400, 401, 403, 404 and wrong
// digests are not, and no host that never answered. The attempts of one piece of
// work count together: those of an upload with those of the questions that it asks
// on its way. What a source of bytes fails with is its caller's to try again.
//
// Every wait has an end. A server that takes or gives nothing for too long, or
// little more, loses the one request: of metadata, tokens, redirects, errors and
// blobs alike, as package internal/stall has it. What stores a blob may take thirty
// times as long to be answered.
//
// A host that is not loopback is reached over TLS, or fails. A loopback host is
// asked with TLS first, without credentials, and where that is no TLS server without:
// the question for a manifest tells, and where there is none to ask one for /v2/. Where
// only its name says that it is one, as "x.localhost" does, it has to be at a loopback address.
//
// Specification:
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md
package registry
