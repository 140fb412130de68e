// Package modeltest makes model files for tests: PT2 archives, safetensors files,
// and a carton with the habits of the format's reference implementation.
//
// There is no complete public PT2 archive of torch 2.8 or later to test with.
// These are built from the documented layout and from torch's sources at v2.9.1,
// habits of its zip writer included: torch/export/pt2_archive/_package.py,
// torch/_export/serde/schema.py, caffe2/serialize/inline_container.cc and
// third_party/miniz-3.0.2. They are what torch would write as far as those say.
package modeltest

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"testing"
)

// Record is a file inside an archive.
type Record struct {
	Name string
	Data []byte
}

const (
	align = 64 // data begin at multiples of it

	flagDescriptor = 0x0008
	flagUTF8       = 0x0800
)

// TorchZip returns a zip of records below root as torch's PyTorchStreamWriter
// writes it, with the records .data/version, byteorder ("little" or "big") and
// .data/serialization_id that it adds. It has torch's habits: stored, data at
// multiples of 64 behind an extra field "FB", sizes and CRC only in data
// descriptors and the directory, none for an empty record, the date 1980-00-00,
// and a zip64 end record always.
func TorchZip(root, byteOrder string, records ...Record) []byte {
	w := torchWriter{root: root}
	for _, r := range records {
		w.add(r.Name, r.Data)
	}
	w.add(".data/version", []byte("6\n"))
	w.add("byteorder", []byte(byteOrder))
	// The first half, a hash of names, depends on torch's C++ library.
	w.add(".data/serialization_id", fmt.Appendf(nil, "%020d%020d", uint64(0x9e3779b97f4a7c15), w.combined))
	return w.finish()
}

type torchWriter struct {
	root      string
	b         []byte // the zip so far
	directory []byte
	n         uint64
	combined  uint64 // of the CRCs
}

func (w *torchWriter) add(name string, data []byte) {
	name = w.root + "/" + name
	offset := len(w.b)
	flags, crc := uint16(flagUTF8), crc32.ChecksumIEEE(data)
	if len(data) > 0 {
		flags |= flagDescriptor
		w.combined ^= uint64(crc) + 0x9e3779b9 + w.combined<<6 + w.combined>>2
	}
	padding := (align - (offset+30+len(name)+4)%align) % align
	le := binary.LittleEndian
	h := []byte("PK\x03\x04\x00\x00") // needs version 0
	h = le.AppendUint16(h, flags)
	h = append(h, make([]byte, 2+4+12)...) // method, date and time, CRC and sizes: zeros
	h = le.AppendUint16(h, uint16(len(name)))
	h = le.AppendUint16(h, uint16(4+padding))
	h = append(h, name...)
	h = append(h, 'F', 'B')
	h = le.AppendUint16(h, uint16(padding))
	h = append(h, bytes.Repeat([]byte("Z"), padding)...)
	w.b = append(append(w.b, h...), data...)
	if len(data) > 0 {
		w.b = append(w.b, "PK\x07\x08"...)
		for _, v := range []uint32{crc, uint32(len(data)), uint32(len(data))} {
			w.b = le.AppendUint32(w.b, v)
		}
	}
	d := []byte("PK\x01\x02\x00\x00\x00\x00")
	d = le.AppendUint16(d, flags)
	d = append(d, make([]byte, 6)...)
	for _, v := range []uint32{crc, uint32(len(data)), uint32(len(data))} {
		d = le.AppendUint32(d, v)
	}
	d = le.AppendUint16(d, uint16(len(name)))
	d = append(d, make([]byte, 12)...)
	d = le.AppendUint32(d, uint32(offset))
	w.directory = append(append(w.directory, d...), name...)
	w.n++
}

// finish appends the directory and the three end records.
func (w *torchWriter) finish() []byte {
	le := binary.LittleEndian
	offset, size := uint64(len(w.b)), uint64(len(w.directory))
	b := slices.Concat(w.b, w.directory)
	at := uint64(len(b))
	b = append(b, "PK\x06\x06\x2c\x00\x00\x00\x00\x00\x00\x00\x1e\x03\x2d\x00\x00\x00\x00\x00\x00\x00\x00\x00"...)
	for _, v := range []uint64{w.n, w.n, size, offset} {
		b = le.AppendUint64(b, v)
	}
	b = append(b, "PK\x06\x07\x00\x00\x00\x00"...)
	b = le.AppendUint64(b, at)
	b = le.AppendUint32(b, 1)
	b = append(b, "PK\x05\x06\x00\x00\x00\x00"...)
	b = le.AppendUint16(b, uint16(w.n))
	b = le.AppendUint16(b, uint16(w.n))
	b = le.AppendUint32(b, uint32(size))
	b = le.AppendUint32(b, uint32(offset))
	return append(b, 0, 0)
}

// PlainZip returns a zip as Python's zipfile writes it to a file: sizes in the
// local headers, stored unless deflate is asked for.
func PlainZip(t testing.TB, deflate bool, records ...Record) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, r := range records {
		h := &zip.FileHeader{Name: r.Name, Method: zip.Store, CRC32: crc32.ChecksumIEEE(r.Data), UncompressedSize64: uint64(len(r.Data))}
		data := r.Data
		if deflate {
			h.Method = zip.Deflate
			data = deflated(t, r.Data)
		}
		h.CompressedSize64 = uint64(len(data))
		f, err := w.CreateRaw(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Records returns the content of a zip, for a test that changes it.
func Records(t testing.TB, b []byte) []Record {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	var records []Record
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, Record{f.Name, data})
	}
	return records
}

// TorchScript returns an archive as torch.jit.save writes it, of a module without
// code or weights: its root folder is called by the file's name.
// https://github.com/pytorch/pytorch/blob/v2.9.1/torch/csrc/jit/serialization/export_module.cpp
func TorchScript(root string) []byte {
	return TorchZip(root, "little",
		Record{"data.pkl", []byte("\x80\x02c__torch__\nModule\nq\x00)\x81}b.")},
		Record{"code/__torch__.py", []byte("class Module(Module):\n  __parameters__ = []\n  __buffers__ = []\n")},
		Record{"constants.pkl", []byte("\x80\x02).")},
	)
}

// Wasm is the smallest WebAssembly component: a header and no section.
// https://github.com/WebAssembly/component-model/blob/main/design/mvp/Binary.md#component-definitions
const Wasm = "\x00asm\x0d\x00\x01\x00"
