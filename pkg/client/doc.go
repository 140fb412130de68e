// Package client pushes and pulls cartons, one-file machine-learning models,
// to and from OCI registries: one call each way, for any carton and any place.
//
//	c, err := client.New(client.Options{})
//	_, err = c.Push(ctx, "model.carton", "ghcr.io/org/m:1", client.PushOptions{})
//	_, err = c.Pull(ctx, "ghcr.io/org/m:1", client.PullOptions{Output: "model.carton"})
//
// [location.Parse] says what names what, [Client.Open] opens any of it as a
// carton.Source. The command carton-oci goes through here and adds flags,
// output and exit codes.
//
// # Rules that this package keeps
//
// A tag is resolved once. Everything after that goes by the digest that it
// stood for, and results name the digest.
//
// A push sends nothing of a carton whose structure, names or carton.toml are
// broken; Mapping.AllowInvalid of [PushOptions] forgives the last. The image manifest goes last,
// so that a tag never points to what is not complete.
//
// The image form of a carton, which runtimes mount that mount no artifacts, goes
// beside the artifact (Mapping.Image of [PushOptions], [Client.Image]). Its tag moves before the
// artifact's. A push that would leave one of another model behind is refused
// unless it says so.
//
// A copy ([Client.Copy]) has the digest of its source, and takes along what belongs to
// that where it is asked to. What is a carton, or says that it is one, is vouched for; all
// else is known by its digests alone. The tag moves when all of it is there.
//
// What is published was verified. An artifact that is pushed is copied as it is,
// unless a form is asked for; then, and where an image form shares its layers, all
// that other programs would unpack is read and compared with MANIFEST first.
//
// A pull gives a file or folder its final name when every byte was checked
// against the model hash, and not before. What is there already is not
// replaced unless [PullOptions] Force says so.
//
// Whose signature is wanted is asked when something is opened ([OpenOptions] Trust,
// [Options] Policy), with what is read by then: manifests and MANIFEST. No weight was
// asked for where it is refused. What signs ([Client.Sign]) reads no more.
//
// Linked members of a thin carton are read from the repository that is pushed to
// where that has them, and from those that [Options] AllowLinkRepos names, with
// credentials; else from where LINKS says, without any.
//
// Nothing here prints, logs or exits. Errors wrap the sentinels of the packages
// that found them (carton.ErrChecksum, layout.ErrNotFound,
// registry.ErrUnauthorized, links.ErrNotAllowed, …) and [location.ErrLocation]; what
// can be done about one are its hints ([hint.Of]).
package client
