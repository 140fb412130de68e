package pt2_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/modeltest"
)

// looseRecords returns the stored records of an archive of TorchZip, whatever
// their CRCs say.
func looseRecords(t *testing.T, b []byte) []modeltest.Record {
	t.Helper()
	var records []modeltest.Record
	le := binary.LittleEndian
	_, d, _ := bytes.Cut(b, []byte("PK\x01\x02"))
	for d = append([]byte("PK\x01\x02"), d...); bytes.HasPrefix(d, []byte("PK\x01\x02")); {
		size, names, offset := le.Uint32(d[24:]), int(le.Uint16(d[28:])), le.Uint32(d[42:])
		local := b[offset:]
		begin := 30 + int(le.Uint16(local[26:])) + int(le.Uint16(local[28:]))
		records = append(records, modeltest.Record{Name: string(d[46 : 46+names]), Data: local[begin : begin+int(size)]})
		d = d[46+names:]
	}
	return records
}

// trimmed returns records without the root folder and without those that TorchZip
// adds.
func trimmed(records []modeltest.Record) []modeltest.Record {
	var out []modeltest.Record
	for _, r := range records {
		_, name, _ := strings.Cut(r.Name, "/")
		if name != "byteorder" && !strings.HasPrefix(name, ".data/") {
			out = append(out, modeltest.Record{Name: name, Data: r.Data})
		}
	}
	return out
}
