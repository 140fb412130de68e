package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// member is one file of a carton that is made for the benchmark.
type member struct {
	path string // slash-separated, in the carton
	size int64
	sum  string // sha256
	crc  uint32
}

const info = `spec_version = 1
model_name = "bench"

[runner]
runner_name = "python"
required_framework_version = "=3.11"
runner_compat_version = 1
`

// chunk is how much is made or copied at once: the benchmark itself stays small,
// because no child's peak memory is counted below its parent's.
const chunk = 1 << 20

// writeWeight writes a safetensors file of one tensor of noise, the same for one
// seed.
func writeWeight(dir, path string, size int64, seed uint64) (member, error) {
	const headerSize = 4096
	header := bytes.Repeat([]byte{' '}, headerSize)
	binary.LittleEndian.PutUint64(header, headerSize-8)
	copy(header[8:], fmt.Sprintf(`{"w":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}`, size-headerSize, size-headerSize))
	return writeMember(dir, path, io.MultiReader(bytes.NewReader(header), noise(seed, size-headerSize)))
}

// noise returns so many bytes that don't compress, the same for one seed.
func noise(seed uint64, size int64) io.Reader {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	return io.LimitReader(rand.NewChaCha8(key), size)
}

// writeSparse writes a safetensors file of one tensor that is nearly all zeros
// and takes nearly no disk.
func writeSparse(dir, path string, size int64) (member, error) {
	m := member{path: path, size: size}
	f, err := create(dir, path)
	if err != nil {
		return m, err
	}
	h := sha256.New()
	block := make([]byte, chunk)
	for off := int64(0); off < size; off += chunk {
		clear(block[:4096])
		used := 8
		if off == 0 {
			text := fmt.Sprintf(`{"w":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}`, size-4096, size-4096)
			binary.LittleEndian.PutUint64(block, 4096-8)
			used = 8 + copy(block[8:4096], text+strings.Repeat(" ", 4096-8-len(text)))
		} else {
			binary.LittleEndian.PutUint64(block, uint64(off))
		}
		if _, err := f.WriteAt(block[:used], off); err != nil {
			return m, errors.Join(err, f.Close())
		}
		h.Write(block[:min(chunk, size-off)])
	}
	m.sum = hex.EncodeToString(h.Sum(nil))
	return m, errors.Join(f.Truncate(size), f.Close())
}

func create(dir, path string) (*os.File, error) {
	name := filepath.Join(dir, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, err
	}
	return os.Create(name)
}

func writeMember(dir, path string, r io.Reader) (member, error) {
	m := member{path: path}
	f, err := create(dir, path)
	if err != nil {
		return m, err
	}
	sum, crc := sha256.New(), crc32.NewIEEE()
	m.size, err = io.CopyBuffer(io.MultiWriter(f, sum, crc), r, make([]byte, chunk))
	m.sum, m.crc = hex.EncodeToString(sum.Sum(nil)), crc.Sum32()
	return m, errors.Join(err, f.Close())
}

// writeManifest makes a folder of members a carton, and returns all of them.
func writeManifest(dir string, members []member) ([]member, error) {
	toml, err := writeMember(dir, "carton.toml", strings.NewReader(info))
	if err != nil {
		return nil, err
	}
	var manifest strings.Builder
	for _, m := range append([]member{toml}, members...) { // members are below model/, in order
		manifest.WriteString(m.path + "=" + m.sum + "\n")
	}
	m, err := writeMember(dir, "MANIFEST", strings.NewReader(manifest.String()))
	return append(members[:len(members):len(members)], toml, m), err
}

// writeCarton writes the members of a folder into a zip, all of them Stored.
func writeCarton(name, dir string, members []member) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := zip.NewWriter(f)
	for _, m := range members {
		to, err := w.CreateRaw(&zip.FileHeader{
			Name: m.path, Method: zip.Store, CRC32: m.crc,
			CompressedSize64: uint64(m.size), UncompressedSize64: uint64(m.size),
		})
		if err != nil {
			return errors.Join(err, f.Close())
		}
		from, err := os.Open(filepath.Join(dir, filepath.FromSlash(m.path)))
		if err != nil {
			return errors.Join(err, f.Close())
		}
		_, err = io.CopyBuffer(to, struct{ io.Reader }{from}, make([]byte, chunk))
		from.Close()
		if err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(w.Close(), f.Close())
}
