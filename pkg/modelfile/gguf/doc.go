// Package gguf reads the headers of GGUF files, the format of llama.cpp and what is
// built on it: what the model is, which tensors the file holds, of what type and
// shape, and where their bytes are.
//
// # The format
//
// A file is "GGUF", a version, the number of tensors and of keys; the keys, each a
// name, a type and a value; the tensors, each a name, its dimensions, a type and an
// offset; padding; and the tensors' bytes, each tensor at a multiple of the
// alignment. Numbers are little-endian, counts and lengths have 64 bits, strings
// have a length before them. Dimensions are written fastest first: [Tensor] Shape is
// the other way round, as everybody else has it. Most types are blocks of several
// elements that share a scale ("Q4_K": 256 elements in 144 bytes).
//
// # Rules that this package keeps
//
//   - Versions 2 and 3 are read. Version 1, big-endian files, and the formats before
//     GGUF (GGML, GGMF, GGJT) are named and not looked into: [ErrVersion].
//   - No memory is taken by a number from the file: a count or length is held
//     against the bytes that are left. Arrays, such as a tokenizer's, are stepped
//     over; so are strings of more than [MaxValue]. What is kept takes
//     [MaxKeptBytes] at most, and a header has [MaxHeaderBytes] at most.
//   - Names of keys and tensors are UTF-8, not empty, and none occurs twice. Arrays
//     nest at most [MaxDepth] deep. A bool is 0 or 1.
//   - The alignment, "general.alignment" or [DefaultAlign], is a number of 32 bits and
//     a power of two, at most [MaxAlign].
//   - A tensor has at most [MaxDims] dimensions, each 1 or more; products are checked
//     for overflow; the fastest dimension fills whole blocks. Tensors begin at
//     multiples of the alignment, share no byte, and end within the file. A file may
//     end with its last tensor or with the padding behind it.
//   - A type with a number that is not known here is no fault: the tensor's size is
//     then not known. Gaps between tensors and another order, which llama.cpp refuses,
//     and bytes behind the last tensor are findings.
//   - What a key says counts only where it has the type that it must have.
//
// # Split models
//
// A model in several files, as gguf-split writes it, is PREFIX-00001-of-00003.gguf
// and so on, each a whole file with the keys split.no, split.count and
// split.tensors.count; the first has all other keys. [CheckSet] says whether they are
// all there.
//
// Specification: https://github.com/ggml-org/ggml/blob/01f0d4d/docs/gguf.md; where it
// and the reader of llama.cpp disagree, what both accept is accepted:
// https://github.com/ggml-org/llama.cpp/blob/067d44f/ggml/src/gguf.cpp.
package gguf
