package zipdir

import "encoding/binary"

// Records of a zip, with the section of APPNOTE that defines them. Lengths are
// those of the fixed part, in bytes.
const (
	LocalSig      = 0x04034b50 // 4.3.7
	descriptorSig = 0x08074b50 // 4.3.9
	EntrySig      = 0x02014b50 // 4.3.12
	End64Sig      = 0x06064b50 // 4.3.14
	Locator64Sig  = 0x07064b50 // 4.3.15
	EndSig        = 0x06054b50 // 4.3.16

	LocalLen     = 30
	EntryLen     = 46
	End64Len     = 56
	Locator64Len = 20
	EndLen       = 22

	// Ones32 in a field of 32 bits says that the zip64 extra field has the value.
	Ones32 = 1<<32 - 1
)

// Method is a compression method, APPNOTE 4.4.5.
type Method uint16

// The methods that this module knows.
const (
	Stored  Method = 0
	Deflate Method = 8
	Zstd    Method = 93
)

// String returns the method's name.
func (m Method) String() string {
	switch m {
	case Stored:
		return "stored"
	case Deflate:
		return "deflate"
	case Zstd:
		return "zstd"
	}
	return "unknown"
}

// General purpose flags, APPNOTE 4.4.4.
const (
	flagEncrypted  = 1 << 0
	flagLevel      = 3 << 1 // how hard the writer tried; says nothing to a reader
	flagDescriptor = 1 << 3 // sizes and CRC follow the data
	FlagUTF8       = 1 << 11
)

func le16(b []byte) uint16 { return binary.LittleEndian.Uint16(b) }
func le32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
func le64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }
