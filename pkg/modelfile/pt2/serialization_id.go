package pt2

import (
	"strconv"
	"strings"

	"github.com/carton-oci/carton-oci/internal/zipdir"
)

const serializationIDFile = ".data/serialization_id"

// checkSerializationID recomputes the second half of .data/serialization_id.
// PyTorchStreamWriter::writeSerializationId writes two 64-bit numbers of 20
// digits: a hash of the names in the order of an unordered_set, which depends on
// the C++ library, and one of the CRCs in the order of writing:
// https://github.com/pytorch/pytorch/blob/v2.9.1/caffe2/serialize/inline_container.cc
func (o *opener) checkSerializationID() error {
	id, err := o.files.word(serializationIDFile)
	if err != nil || id == "" {
		return err
	}
	if len(id) != 40 || !isDigits(id) {
		o.find("%s is %s, and not 40 digits", serializationIDFile, quote(id))
		return nil
	}
	want := pad20(combinedCRC(o.files.dir.Files, o.files.prefix+serializationIDFile))
	if id[20:] != want {
		o.find("%s: the archive's CRCs give %s, it says %s: files were changed after torch wrote it",
			serializationIDFile, want, id[20:])
	}
	return nil
}

// combinedCRC combines CRCs as torch does, of the files that have bytes and come
// before the id.
func combinedCRC(files []*zipdir.Entry, id string) uint64 {
	sum := uint64(0)
	for _, e := range files {
		if e.Name == id {
			break
		}
		if e.Size != 0 { // torch takes the CRC from the data descriptor, and the empty have none
			sum = hashCombine(sum, uint64(e.CRC))
		}
	}
	return sum
}

// hashCombine is c10::hash_combine.
func hashCombine(seed, value uint64) uint64 {
	return seed ^ (value + 0x9e3779b9 + seed<<6 + seed>>2)
}

func pad20(n uint64) string {
	s := strconv.FormatUint(n, 10)
	return strings.Repeat("0", 20-len(s)) + s
}
