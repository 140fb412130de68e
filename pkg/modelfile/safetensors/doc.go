// Package safetensors reads the headers of safetensors files: which tensors a
// file holds, of what type and shape, and where their bytes are. It also writes
// such headers, and reads the index of a model that is several of them.
//
// # The format
//
// A file is an unsigned 64-bit little-endian number N, at most
// [MaxHeaderBytes]; N bytes of UTF-8 JSON, padded with white space; and the
// tensors' bytes without a gap:
//
//	{"__metadata__": {"format": "pt"},
//	 "fc1.weight": {"dtype": "F32", "shape": [32, 16], "data_offsets": [0, 2048]}, …}
//
// Offsets count from the end of the JSON, begin and end of a half-open span.
// Tensors are little-endian, contiguous, in C order.
//
// # Rules that this package keeps
//
//   - Sorted by begin, the first span begins at 0 and every other where the one
//     before ends: no byte is shared, none is unaccounted for. 8 + N + the last
//     end is the file's size, which [ReadHeader] checks.
//   - A span has as many bytes as the shape and type need; products are checked
//     for overflow; types of less than a byte must fill whole ones. A shape of no
//     dimensions is a scalar, and a dimension may be 0.
//   - No key occurs twice, in the header or in an entry. Unknown keys of an entry
//     are ignored, as the reference implementation does.
//   - A header has at most [MaxTensors] tensors, and what it says takes about
//     [MaxKeptBytes] of memory at most. Memory grows with that only.
//   - White space before the JSON is read although writers must not write it.
//
// The form of the format's first draft, "offsets" and types such as "float16",
// is read too; [Header] Draft says so.
//
// # Writing
//
// [WriteHeader] makes one header of the same tensors, always: the order of the
// reference implementation, metadata sorted, the header padded with spaces to a
// multiple of 8. What it writes, this package reads.
//
// # Sharded models
//
// A model of several files has an index beside them, [IndexName], that says which
// file holds which tensor. Its names of files are plain ones: an index can't name
// what lies outside its folder. What the files' own headers say counts; the index
// is only a guide to them.
//
// Specification and reference implementation:
// https://github.com/huggingface/safetensors/tree/v0.6.2, README.md and
// safetensors/src/tensor.rs.
package safetensors
