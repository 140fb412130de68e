package safetensors

// DType is the type of a tensor's elements, as the format spells it.
type DType string

// The types of the format.
const (
	Bool       DType = "BOOL"
	F4         DType = "F4"
	F6E2M3     DType = "F6_E2M3"
	F6E3M2     DType = "F6_E3M2"
	U8         DType = "U8"
	I8         DType = "I8"
	F8E5M2     DType = "F8_E5M2"
	F8E4M3     DType = "F8_E4M3"
	F8E8M0     DType = "F8_E8M0"
	F8E4M3FNUZ DType = "F8_E4M3FNUZ"
	F8E5M2FNUZ DType = "F8_E5M2FNUZ"
	I16        DType = "I16"
	U16        DType = "U16"
	F16        DType = "F16"
	BF16       DType = "BF16"
	I32        DType = "I32"
	U32        DType = "U32"
	F32        DType = "F32"
	C64        DType = "C64"
	F64        DType = "F64"
	I64        DType = "I64"
	U64        DType = "U64"
)

// sizes is how many bits an element has.
var sizes = map[DType]int64{
	Bool: 8,
	F4:   4, F6E2M3: 6, F6E3M2: 6,
	U8: 8, I8: 8, F8E5M2: 8, F8E4M3: 8, F8E8M0: 8, F8E4M3FNUZ: 8, F8E5M2FNUZ: 8,
	I16: 16, U16: 16, F16: 16, BF16: 16,
	I32: 32, U32: 32, F32: 32,
	C64: 64, F64: 64, I64: 64, U64: 64,
}

// names are the types as the format spells them.
var names = func() map[string]DType {
	m := map[string]DType{}
	for d := range sizes {
		m[string(d)] = d
	}
	return m
}()

// draftNames are the types as the format's first draft spells them: numpy's
// names.
var draftNames = map[string]DType{
	"bool":  Bool,
	"uint8": U8, "int8": I8,
	"uint16": U16, "int16": I16, "float16": F16, "bfloat16": BF16,
	"uint32": U32, "int32": I32, "float32": F32,
	"uint64": U64, "int64": I64, "float64": F64, "complex64": C64,
}

// Bits returns the size of one element in bits, 0 for a type that the format
// does not have.
func (d DType) Bits() int { return int(sizes[d]) }
