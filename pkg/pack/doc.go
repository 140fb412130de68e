// Package pack makes a carton of loose files: a folder, weights, a PyTorch
// archive, a WebAssembly module, or a tree in the Plums Model Format. The
// result is a [carton.Source] like any other; carton.Assemble writes it,
// client.PushSource sends it.
//
// # Rules that this package keeps
//
// A carton is a function of the files' paths and contents and of the options:
// not of dates, modes, owners, the folder's name, or the machine. carton.toml is
// written in one order; MANIFEST is sorted.
//
// Files of a folder go to model/ by their paths. What tools leave beside a model
// is left out by one list ([LeftOutByDefault]), which a folder's [IgnoreFile] and
// options continue, and empty folders are, which a carton does not have; all of it
// is said. So one revision of a repository is one model, however it was fetched.
// What an older MANIFEST lists stays (Options.Update).
//
// A symlink to a file stays a symlink where its target is in the carton too and
// is seen from the same place; else its content is packed. One to a folder is
// expanded, as cartons have none. A symlink that leads outside of what is packed
// is refused, as is everything that is neither file, folder nor symlink. Nothing
// outside is read, whoever changes the folder meanwhile. Of a snapshot in a hub's
// cache the blobs of the same repository are inside, and nothing else of it.
//
// Every file is hashed once, but for what says its sha256 already: a large file in a
// hub's list ([OpenListing]), and a blob of a hub's cache that is called by it. That
// is believed until the content is read, and then checked. Reading it again checks it: a file that changes
// after Open is carton.ErrChecksum, never another carton.
//
// What files say of themselves is filled in and told ([Carton] Filled); what
// they don't and a carton needs is asked for, all of it in one error
// ([*MissingError]). What looks wrong but can be packed is a warning; Strict
// refuses it. What is broken is refused; AllowInvalid packs it. So it is with
// files of a folder that hold credentials.
//
// Files of a tree in the Plums Model Format are called what they are in it, in the
// table [categories] of carton.toml, where their names say something else.
//
// A folder is a carton if it has MANIFEST and carton.toml. A carton.toml that is
// given is kept byte for byte: the file that Options name, or the one in the
// folder's root.
package pack
