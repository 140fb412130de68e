package pt2

// dtype is a type of elements.
type dtype struct {
	name string // as safetensors spells it, or would
	size int64  // of an element, in bytes
	swap int64  // of what is swapped where the byte order is another
}

// dtypes are the ScalarTypes of torch/_export/serde/schema.py by their numbers.
var dtypes = map[int64]dtype{
	1:  {"U8", 1, 1},
	2:  {"I8", 1, 1},
	3:  {"I16", 2, 2},
	4:  {"I32", 4, 4},
	5:  {"I64", 8, 8},
	6:  {"F16", 2, 2},
	7:  {"F32", 4, 4},
	8:  {"F64", 8, 8},
	9:  {"C32", 4, 2},
	10: {"C64", 8, 4},
	11: {"C128", 16, 8},
	12: {"BOOL", 1, 1},
	13: {"BF16", 2, 2},
	28: {"U16", 2, 2},
	29: {"F8_E4M3", 1, 1},
	30: {"F8_E5M2", 1, 1},
	31: {"F8_E4M3FNUZ", 1, 1},
	32: {"F8_E5M2FNUZ", 1, 1},
	33: {"F8_E8M0", 1, 1},
	34: {"U32", 4, 4}, // since schema 8.20, torch 2.14
	35: {"U64", 8, 8},
}

// byName are the same by name.
var byName = func() map[string]dtype {
	m := map[string]dtype{}
	for _, d := range dtypes {
		m[d.name] = d
	}
	return m
}()
