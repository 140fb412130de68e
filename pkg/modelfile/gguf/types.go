package gguf

import "math/bits"

// Type is the type of a tensor's elements, by the number that files have for it.
type Type uint32

// typeInfo is how a type's elements are stored: so many in a block of so many bytes.
type typeInfo struct {
	name        string
	block, size int64
}

// types are the types that files may hold. Numbers that are missing here are of
// types that are gone (4, 5, 31 to 33, 36 to 38), or newer than this table.
// https://github.com/ggml-org/llama.cpp/blob/067d44f/ggml/include/ggml.h
var types = map[Type]typeInfo{
	0: {"F32", 1, 4}, 1: {"F16", 1, 2},
	2: {"Q4_0", 32, 18}, 3: {"Q4_1", 32, 20}, 6: {"Q5_0", 32, 22}, 7: {"Q5_1", 32, 24}, 8: {"Q8_0", 32, 34},
	9:  {"Q8_1", 32, 36},
	10: {"Q2_K", 256, 84}, 11: {"Q3_K", 256, 110}, 12: {"Q4_K", 256, 144}, 13: {"Q5_K", 256, 176},
	14: {"Q6_K", 256, 210}, 15: {"Q8_K", 256, 292},
	16: {"IQ2_XXS", 256, 66}, 17: {"IQ2_XS", 256, 74}, 18: {"IQ3_XXS", 256, 98}, 19: {"IQ1_S", 256, 50},
	20: {"IQ4_NL", 32, 18},
	21: {"IQ3_S", 256, 110}, 22: {"IQ2_S", 256, 82}, 23: {"IQ4_XS", 256, 136},
	24: {"I8", 1, 1}, 25: {"I16", 1, 2}, 26: {"I32", 1, 4}, 27: {"I64", 1, 8}, 28: {"F64", 1, 8},
	29: {"IQ1_M", 256, 56}, 30: {"BF16", 1, 2}, 34: {"TQ1_0", 256, 54}, 35: {"TQ2_0", 256, 66},
	39: {"MXFP4", 32, 17}, 40: {"NVFP4", 64, 36}, 41: {"Q1_0", 128, 18}, 42: {"Q2_0", 64, 18},
}

// String returns the type's name, "" of one that is not known here. Types that
// safetensors has too are called as there.
func (t Type) String() string { return types[t].name }

// bytes returns how many bytes so many elements have, false where no file can be so
// large. Of a type that is not known it is -1.
func (t Type) bytes(elements int64) (int64, bool) {
	x, known := types[t]
	if !known {
		return -1, true
	}
	hi, lo := bits.Mul64(uint64(elements/x.block), uint64(x.size))
	return int64(lo), hi == 0 && lo < maxEnd
}

// fileTypes are what "general.file_type" says of most of the tensors, by its number.
// https://github.com/ggml-org/llama.cpp/blob/067d44f/include/llama.h, llama_ftype
var fileTypes = map[uint64]string{
	0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M",
	13: "Q3_K_L",
	14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS", 21: "Q2_K_S",
	22: "IQ3_XS",
	23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S", 29: "IQ2_M", 30: "IQ4_XS",
	31: "IQ1_M",
	32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4_MOE", 39: "NVFP4", 40: "Q1_0", 41: "Q2_0",
}

// fileTypeGuessed is added to a file type that its writer has guessed.
const fileTypeGuessed = 1024

// ValueType is the type of a key's value.
type ValueType uint32

// The types of values.
const (
	Uint8 ValueType = iota
	Int8
	Uint16
	Int16
	Uint32
	Int32
	Float32
	Bool
	String
	Array
	Uint64
	Int64
	Float64
)

// valueBytes are the sizes of values that have one.
var valueBytes = map[ValueType]int64{
	Uint8: 1, Int8: 1, Uint16: 2, Int16: 2, Uint32: 4, Int32: 4, Float32: 4, Bool: 1, Uint64: 8, Int64: 8, Float64: 8,
}
