// Package dtype is the table of the types that elements of tensors have, by the
// names of the formats that hold tensors and of those that speak about them.
package dtype

// Type is a type of elements. What does not have it has "" or 0.
type Type struct {
	// Name is what safetensors calls it, and everything here that shows types.
	Name string
	// Bits is the size of an element.
	Bits int64
	// ModelPack is its name in the config of an artifact (docs/mapping.md).
	ModelPack string
	// Carton is its name in carton.toml and tensor_data/index.toml.
	Carton string
	// Numpy is its code in a .npy file, without the byte order.
	Numpy string
	// Torch is its number among the ScalarTypes of torch/_export/serde/schema.py.
	Torch int64
}

// Types are all types: first those of safetensors, in the order of the reference
// implementation's enum (safetensors/src/tensor.rs), in which later ones are not
// smaller; then those that safetensors does not have.
var Types = []Type{
	{"BOOL", 8, "bool", "", "b1", 12},
	{"F4", 4, "float4", "", "", 0},
	{"F6_E2M3", 6, "float6_e2m3", "", "", 0},
	{"F6_E3M2", 6, "float6_e3m2", "", "", 0},
	{"U8", 8, "uint8", "uint8", "u1", 1},
	{"I8", 8, "int8", "int8", "i1", 2},
	{"F8_E5M2", 8, "float8_e5m2", "", "", 30},
	{"F8_E4M3", 8, "float8_e4m3", "", "", 29},
	{"F8_E8M0", 8, "float8_e8m0", "", "", 33},
	{"F8_E4M3FNUZ", 8, "float8_e4m3fnuz", "", "", 31},
	{"F8_E5M2FNUZ", 8, "float8_e5m2fnuz", "", "", 32},
	{"I16", 16, "int16", "int16", "i2", 3},
	{"U16", 16, "uint16", "uint16", "u2", 28},
	{"F16", 16, "float16", "", "f2", 6},
	{"BF16", 16, "bfloat16", "", "", 13},
	{"I32", 32, "int32", "int32", "i4", 4},
	{"U32", 32, "uint32", "uint32", "u4", 34}, // of torch since schema 8.20, torch 2.14
	{"F32", 32, "float32", "float32", "f4", 7},
	{"C64", 64, "complex64", "", "c8", 10},
	{"F64", 64, "float64", "float64", "f8", 8},
	{"I64", 64, "int64", "int64", "i8", 5},
	{"U64", 64, "uint64", "uint64", "u8", 35},

	{"C32", 32, "c32", "", "", 9},
	{"C128", 128, "c128", "", "c16", 11},
}

// inSafetensors is how many of Types safetensors has.
const inSafetensors = 22

// ranks are the places of Types by their names.
var ranks = func() map[string]int {
	m := map[string]int{}
	for i := range Types {
		m[Types[i].Name] = i
	}
	return m
}()

// Named returns the type of that name, nil for none.
func Named(name string) *Type {
	if i, ok := ranks[name]; ok {
		return &Types[i]
	}
	return nil
}

// Rank returns the place of a type in Types, -1 for a name that is none.
func Rank(name string) int {
	if i, ok := ranks[name]; ok {
		return i
	}
	return -1
}

// Find returns the first type that fits, nil for none.
func Find(fits func(t *Type) bool) *Type {
	for i := range Types {
		if fits(&Types[i]) {
			return &Types[i]
		}
	}
	return nil
}

// Bytes returns the size of an element in bytes, of types that fill whole ones.
func (t *Type) Bytes() int64 { return t.Bits / 8 }

// Safetensors reports whether safetensors has the type.
func (t *Type) Safetensors() bool { return ranks[t.Name] < inSafetensors }

// Complex reports whether an element is two numbers.
func (t *Type) Complex() bool { return t.Name[0] == 'C' }
