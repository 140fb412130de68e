// Package hub reads repositories of models on a hub that speaks the API of
// huggingface.co, as folders that can be packed: [Client.Open] gives a
// [Snapshot], whose Listing is what pack.OpenListing takes.
//
// # Rules that this package keeps
//
// A revision is asked for once. From then on everything is asked for by the
// commit that it stood for; an answer that is another commit's is [ErrList].
//
// The hub's list of files says the size of each, and the sha256 of those that it
// keeps in its large storage (git-lfs, xet); nothing of these is read to know it.
// Of the others the list has git's own hash, which is checked when they are read,
// as a whole. What is read of large files is checked by who reads it: by the
// sha256 in the carton's MANIFEST. Sizes are checked here.
//
// The list is a stranger's. It has at most [carton.MaxMembers] files in pages that
// each bring some, and a page has at most 64 MiB. Names are judged where they
// become a carton's.
//
// Content comes from the hub's storage, whose addresses are signed and are
// forgotten after a while. An address is used for as many ranges as it serves, as
// each question to the hub counts against a limit; when it is refused the hub is
// asked for another. What is long is read in several ranges at once, within
// [Ahead] bytes of memory for all of a client's readers together.
//
// A large file that the hub's own tools have fetched into their cache is read there.
// It is found by its sha256 and its size, and believed no more than what the hub
// sends: who reads it checks it.
//
// The token goes to the endpoint, and nowhere else: not to the storage that an
// answer leads to, and not by plain http to another machine, unless
// [Options] AllowHTTP says so. Links between pages are followed on the endpoint, whatever
// host they name. Errors show neither token nor signature (internal/secret).
//
// What may pass is tried again as [httprange.Policy] says. Of a hub's limit ("429")
// the wait is what it asks for, up to [MaxWait].
//
// Specification: https://huggingface.co/docs/hub/api and the clients
// huggingface_hub 1.28 and @huggingface/hub 2.17.
package hub
