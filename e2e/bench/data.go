package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// model is a folder that is a carton, and the same as one file, which is alone
// in its folder.
type model struct {
	dir, carton string
	members     []member // below model/
}

// member is one file of a model.
type member struct {
	path string
	size int64
	sum  string // sha256, once it is written
}

const (
	chunk  = 1 << 20 // bytes that are made at once
	header = 4096    // bytes before the tensors of a safetensors file
)

const info = `spec_version = 1
model_name = "bench"

[runner]
runner_name = "python"
required_framework_version = "=3.11"
runner_compat_version = 1
`

// files are so many members of one size; names are formatted with their numbers.
func files(n int, names string, size int64) []member {
	var all []member
	for i := range n {
		all = append(all, member{path: fmt.Sprintf(names, i), size: size})
	}
	return all
}

// weights are so many members that have a size together.
func weights(n int, size int64) []member {
	return files(n, "model/weights-%05d.safetensors", size/int64(n))
}

// large is the model of most cases.
func (r *rig) large() model { return r.model("large", weights(4, r.size)) }

// many is a model of 10,000 members of 4 KiB.
func (r *rig) many() model { return r.model("many", files(10_000, "model/file%05d.json", 4<<10)) }

// model makes a model of members of noise, once.
func (r *rig) model(name string, members []member) model {
	m, ok := r.models[name]
	if !ok {
		m = model{r.path(name, "folder"), filepath.Join(r.empty(name), "file", "m.carton"), members}
		for i := range members {
			writeNoise(m.dir, &members[i], uint64(i)+uint64(members[i].size))
		}
		writeManifest(m)
		check(os.MkdirAll(filepath.Dir(m.carton), 0o755))
		r.output(r.carton(door{}, "pull", m.dir, "-o", m.carton))
		r.models[name] = m
	}
	return m
}

// newer makes a model of an older one: a folder with another last member.
func (r *rig) newer(old model, seed uint64) model {
	dir, n := r.empty("changed"), len(old.members)-1
	m := model{dir, dir, append([]member(nil), old.members...)}
	writeNoise(m.dir, &m.members[n], seed)
	for _, kept := range m.members[:n] {
		check(os.Link(filepath.Join(old.dir, kept.path), filepath.Join(m.dir, kept.path)))
	}
	writeManifest(m)
	return m
}

// writeNoise writes bytes that don't compress, the same for one seed: the one
// tensor of a safetensors file, or a file of nothing else.
func writeNoise(dir string, m *member, seed uint64) {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	var noise io.Reader = rand.NewChaCha8(key)
	if strings.HasSuffix(m.path, ".safetensors") {
		noise = io.MultiReader(bytes.NewReader(safetensors(m.size-header)), noise)
	}
	write(dir, m, io.LimitReader(noise, m.size))
}

// safetensors returns the header of a file of tensors, one behind the other, whose
// names are their numbers; they end so many bytes behind the header.
func safetensors(ends ...int64) []byte {
	var tensors []string
	from := int64(0)
	for i, end := range ends {
		tensors = append(tensors, fmt.Sprintf(`"%d":{"dtype":"U8","shape":[%d],"data_offsets":[%d,%d]}`, i, end-from,
			from, end))
		from = end
	}
	text := bytes.Repeat([]byte{' '}, header)
	binary.LittleEndian.PutUint64(text, header-8)
	copy(text[8:], "{"+strings.Join(tensors, ",")+"}")
	return text
}

// write writes a member, and fills in its hash.
func write(dir string, m *member, r io.Reader) {
	name := filepath.Join(dir, m.path)
	check(os.MkdirAll(filepath.Dir(name), 0o755))
	f, err := os.Create(name)
	check(err)
	defer f.Close()
	m.sum = sumOf(io.TeeReader(r, f))
}

// sumOf returns the sha256 of all that there is to read, in hex.
func sumOf(r io.Reader) string {
	h := sha256.New()
	_, err := io.CopyBuffer(h, struct{ io.Reader }{r}, make([]byte, chunk))
	check(err)
	return hex.EncodeToString(h.Sum(nil))
}

// writeManifest makes a folder of members, which are in order, a carton.
func writeManifest(m model) {
	toml := member{path: "carton.toml"}
	write(m.dir, &toml, strings.NewReader(info))
	index := member{path: "tensor_data/index.toml"} // which the format's loader asks for
	write(m.dir, &index, strings.NewReader("tensor = []\n"))
	text := ""
	for _, m := range append([]member{toml, index}, m.members...) {
		text += m.path + "=" + m.sum + "\n"
	}
	write(m.dir, &member{path: "MANIFEST"}, strings.NewReader(text))
}

// sparse makes a folder that is a carton of one weight, nearly all zeros, that
// takes nearly no disk. Its second tensor, 1, is in the middle. Each mebibyte begins
// with its number, so that no two are the same. Where hashed is false the weight's
// hash in MANIFEST is not that of its bytes, which nobody can tell who does not
// read all of them.
func (r *rig) sparse(size, middle int64, hashed bool) model {
	w := member{path: "model/weights.safetensors", size: size}
	m := model{dir: r.empty("sparse")}
	write(m.dir, &w, bytes.NewReader(safetensors(size/2, size/2+middle, size-header)))
	f, err := os.OpenFile(filepath.Join(m.dir, w.path), os.O_RDWR, 0)
	check(err)
	defer f.Close()
	check(f.Truncate(size))
	for off := int64(chunk); off+8 <= size; off += chunk {
		_, err := f.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(off/chunk)), off)
		check(err)
	}
	if hashed {
		w.sum = sumOf(f)
	}
	m.members = []member{w}
	writeManifest(m)
	return m
}
