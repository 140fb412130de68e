// Package carton reads, checks and writes cartons: one-file machine-learning
// models in the Carton format, version 1. It knows nothing of registries.
//
// # The format
//
// A carton is a zip, or the unpacked folder that holds a MANIFEST. Its files
// are its members:
//
//	carton.toml   what the model is and which runner loads it
//	MANIFEST      a line path=hash for every member; not for itself or LINKS
//	model/        whatever the runner needs
//	tensor_data/  index.toml and tensors for self tests and examples (optional)
//	misc/         other files that examples and the description show (optional)
//	LINKS         where members that the zip leaves out can be fetched (optional)
//
// The lower-case hex sha256 of MANIFEST's bytes is the model hash: the model's
// identity. Nothing here ever rewrites the bytes of a MANIFEST or a
// carton.toml that it was given.
//
// # Rules that this package keeps
//
// Structure before content. A zip's end record, central directory, local
// headers, extents and names are checked byte for byte before anything is
// read from it, and no byte of it is unaccounted for. MANIFEST, LINKS and the
// zip must agree on which members there are before a [Source] is returned.
//
// One rule for names. [CheckPath] judges every path, wherever it comes from:
// relative, clean, slash-separated UTF-8 without control characters or
// backslashes, at most [MaxPathBytes]. [Paths] refuses a second path that is
// the same, or the same but for case or Unicode normalisation, or a folder
// where the other is a file.
//
// Bytes are believed when their hash was right. [Source] Open returns io.EOF
// only then; anything read through OpenRange is unverified and callers say so.
//
// Symlinks lie inside model/, are relative, and end at a regular member there.
// A symlink's MANIFEST hash is its final target's.
//
// The canonical carton. [NewPlan] lays out the one zip that a list of members
// produces: see [Plan] for the byte rules.
//
// A final name only ever holds complete, verified bytes: [Assemble] and
// [Extract] write beside it and rename. Members whose ranges are cheap are
// fetched in many ranges at once, straight to where they belong, and hashed in
// order by reading back. What a run leaves that was broken off the next one goes
// on with; the sha256 of all of a member decides, whoever brought its bytes. So it does
// of what [Copies] has on this machine, an older version say, which is copied instead.
//
// LINKS is a text here, and a linked member opens with [ErrLink]: package links
// follows links.
//
// Where what is: the zip form is zip_*.go, the folder form folder.go, both matched
// with MANIFEST in members.go; carton.toml is info_*.go, and a field is a line of
// info_fields.go; a rule that Check has is in check*.go, and one for a single text in
// rule_*.go; writing is plan*.go, assemble.go and extract*.go.
//
// The specification is docs/specification/format.md of
// https://github.com/VivekPanyam/carton; where it and its reference reader
// disagree, this package writes what both accept and reads what either writes.
package carton
