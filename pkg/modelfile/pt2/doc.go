// Package pt2 reads PyTorch's PT2 archives (.pt2): which models an archive
// holds, their weights and constants, what goes into them and comes out, and the
// elements of one tensor.
//
// # Four layouts
//
// An archive is a zip. Which of its layouts it has is told by what is in it,
// never by its name:
//
//   - torch.export.save since 2.8: one root folder, which is the file's name without
//     its extension or "archive", with archive_format in it and models/<m>.json.
//   - aoti_compile_and_package: the same root folder with
//     data/aotinductor/<m>[-<backend>]/ and no models/. What both layouts have is
//     read in either: one archive may hold exported and compiled models.
//   - torch.export.save up to 2.7: no root folder,
//     serialized_exported_program.json and pickled weights.
//   - AOTInductor of early 2025: no root folder, archive_format at the top.
//
// Any other zip is ErrNotPT2; TorchScript archives and files of torch.save are
// called by their names.
//
// # What is read, and what is believed
//
//   - Opening reads the zip's tail, JSON documents and files of a few bytes;
//     never weights, and never a pickle, which is code.
//   - The zip's directory is believed after the checks of internal/zipdir; torch
//     writes zero sizes into local headers and pads them with an extra field "FB",
//     so that data begin at multiples of 64. A local header is read when its
//     content is, and must put a tensor's data where the directory alone says. An
//     entry that is read whole is checked against its CRC-32, unless that is 0, which
//     is how torch writes "not computed".
//   - JSON is read strictly (internal/jsonstream): no key of what is believed
//     occurs twice, numbers are whole and not negative, names that the archive
//     does not hold are errors. What is not believed, such as the graph's nodes,
//     is skipped.
//   - archive_format is "pt2", archive_version "0" where there is one, byteorder
//     "little" or "big", .data/version a number; anything else is refused. Without
//     byteorder it is little.
//   - A tensor is a view of a storage, the raw bytes of one entry: element
//     (i, j, …) is the one at offset + i·stride₀ + j·stride₁ + …. Several names, and
//     several models, may view one storage. Sizes, strides and offset are not
//     negative, and every element lies inside the storage, except that a storage
//     of no bytes is what torch saves of a tensor without data.
//   - What a definition names is there, a compiled package holds a library or its
//     code, files of weights are named by a config, and there is a model: [Archive]
//     Findings says where that is not so.
//   - .data/serialization_id is 20 digits of a hash of names and 20 of one of
//     CRCs. The second half is recomputed. The first depends on the C++ library
//     that torch was built with, and is not.
//
// # Limits
//
// An archive has at most [MaxEntries] entries and [MaxTensors] tensors of at
// most [MaxDims] dimensions, and its documents together at most [MaxJSONBytes]
// bytes, of which at most [MaxKeptBytes] are kept. Memory grows with the count
// of tensors only.
//
// The format:
// https://docs.pytorch.org/docs/2.9/export/pt2_archive.html and, at v2.9.1 of
// https://github.com/pytorch/pytorch, torch/export/pt2_archive/_package.py,
// torch/_export/serde/schema.py and caffe2/serialize/inline_container.cc.
package pt2
