// Package inspect says what is inside a carton's members, wherever the carton
// is: which tensors of what type and shape, one tensor's elements, how many
// parameters in what precision, and in what two cartons differ. It reads headers
// and nothing behind them.
//
// # Rules that this package keeps
//
// Files are told by their names: those of the formats in pkg/modelfile/formats
// (*.safetensors, *.gguf, *.pt2), and what tensor_data/index.toml lists. Of several
// members with one hash, symlinks among them, the first by path whose name tells the format stands for all: the same
// content is read once and counted once.
//
// A header is content of its author's. A file that breaks its format, or that is
// cut short, is a [Note] and never an error; errors are those of the source. A list
// that is not whole says so: each of its notes with an Err is a file that is
// missing from it. Nothing that is only read from a range is verified, and [Open] says so.
//
// A header, as of safetensors, is asked for as a prefix of 100 kB, which nearly all of
// them fit into, and once more where it is longer; where ranges are expensive
// ([carton.Member] Ranged) the member is read forward to the header's end and
// then closed. An archive, as of PT2, is read from its end, by range. In a member where
// ranges are expensive it is not read at all, unless Options.Through asks for it.
//
// A header whose length only reading it tells, as of GGUF, is read on behind that
// prefix, as far as it goes.
//
// Headers of many members are read in parallel, members of one compressed tar
// layer one after another.
//
// Types are named as safetensors names them ("F32", "BF16"), in every format; those
// that it does not have, as their format does ("Q4_K"), and tensor_data's "string" and "nested" are themselves.
//
// What [Describe] counts is part of the mapping between cartons and artifacts
// (docs/mapping.md, config): it depends on the members' content and paths alone,
// not on where they are.
package inspect
