package pack

import (
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/filekind"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
	"github.com/carton-oci/carton-oci/pkg/modelfile/gguf"
	"github.com/carton-oci/carton-oci/pkg/modelfile/safetensors"
)

// maxShards is how many files a model may be cut into: their numbers have five
// digits.
const maxShards = 99_999

// sharded is a model that is cut: a file alone, or the files of one that was cut
// before.
type sharded struct {
	base  string // of the names, with the folder
	files []*file
	index *file // of a safetensors model, nil where there is none
}

// shard cuts models with a file that is larger than Options.Shard into files as the
// tools of their formats name and fill them. Nothing is written: the new files are
// made of the old ones as they are read.
func (p *packer) shard() error {
	if p.opts.Shard <= 0 {
		return nil
	}
	if p.pmf != nil {
		return optionsf("a Plums tree lists its files: they can't be cut into shards")
	}
	large := func(f *file) bool { return f.target == "" && f.size > p.opts.Shard }
	done := map[*file]bool{}
	for _, f := range slices.Clone(p.files) {
		format := filekind.FormatOf(path.Base(f.path))
		if !large(f) || done[f] || !strings.HasPrefix(f.path, modelFolder) {
			continue
		}
		var m *sharded
		var err error
		switch format {
		case filekind.Safetensors:
			m, err = p.safetensorsSet(f)
		case filekind.GGUF:
			m = p.ggufSet(f)
		default:
			p.warnf("%s is larger than %s, and is not cut: only safetensors and GGUF files are", errtext.Quote(f.path),
				errtext.Size(p.opts.Shard))
			continue
		}
		if err == nil {
			err = p.cut(m, format)
		}
		if err != nil {
			return err
		}
		for _, f := range m.files {
			done[f] = true
		}
	}
	return nil
}

// safetensorsSet is the model that a file is of: that of the index beside it that
// lists it, or the file alone.
func (p *packer) safetensorsSet(f *file) (*sharded, error) {
	dir := path.Dir(f.path)
	for _, x := range p.files {
		model, end := filekind.IndexOf(x.path)
		if path.Dir(x.path) != dir || end != filekind.ShardIndex {
			continue
		}
		r, err := p.final(x).open()
		if err != nil {
			return nil, err
		}
		index, err := safetensors.ReadIndex(r)
		r.Close()
		if errors.Is(err, safetensors.ErrFormat) {
			continue // said where files are looked into
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", errtext.Quote(x.path), err)
		}
		if !slices.Contains(index.Shards(), path.Base(f.path)) {
			continue
		}
		m := &sharded{base: model, index: x}
		for _, name := range index.Shards() {
			shard := p.find(path.Join(dir, name))
			if shard == nil {
				return nil, &carton.Error{
					Path: x.path, Kind: carton.ErrFormat,
					Msg: "names the shard " + errtext.Quote(name) +
						", which is not there: the model can't be cut again",
				}
			}
			m.files = append(m.files, shard)
		}
		return m, nil
	}
	return &sharded{base: filekind.TrimFormat(f.path), files: []*file{f}}, nil
}

// ggufSet is the model that a file is of: the parts of one that was split, or the
// file alone.
func (p *packer) ggufSet(f *file) *sharded {
	dir, base := path.Split(f.path)
	set, _, _, ok := gguf.ParsePartName(base)
	if !ok {
		return &sharded{base: filekind.TrimFormat(f.path), files: []*file{f}}
	}
	prefix, _, _ := strings.Cut(set, "-*-of-")
	m := &sharded{base: dir + prefix}
	for _, x := range p.files {
		if all, _, _, ok := gguf.ParsePartName(path.Base(x.path)); ok && all == set &&
			path.Dir(x.path) == path.Dir(f.path) {
			m.files = append(m.files, x)
		}
	}
	slices.SortFunc(m.files, func(a, b *file) int { return strings.Compare(a.path, b.path) })
	return m
}

// cut puts the shards in the place of the files.
func (p *packer) cut(m *sharded, format string) error {
	if err := p.mayCut(m); err != nil {
		return err
	}
	shards, total, err := m.shards(format, p.opts.Shard)
	switch {
	case errtext.IsLimit(err), errors.Is(err, gguf.ErrVersion), errors.Is(err, gguf.ErrFormat),
		errors.Is(err, safetensors.ErrFormat), errors.Is(err, modelfile.ErrPointer):
		return &carton.Error{
			Path: m.files[0].path, Kind: carton.ErrFormat,
			Msg: "can't be cut into shards: " + err.Error(),
		}
	case err != nil:
		return fmt.Errorf("%s: %w", errtext.Quote(m.files[0].path), err)
	case len(shards) == 1 && len(m.files) == 1:
		p.warnf("%s is larger than %s, and is not cut: it holds one tensor", errtext.Quote(m.files[0].path),
			errtext.Size(p.opts.Shard))
		return nil
	case len(shards) > maxShards:
		return optionsf("%s would be cut into %d files, and %d is the most: want larger ones",
			errtext.Quote(m.files[0].path), len(shards), maxShards)
	}
	gone := map[*file]bool{m.index: m.index != nil}
	for _, f := range m.files {
		gone[f] = true
	}
	for _, f := range p.files {
		if f.target != "" && gone[p.final(f)] {
			return optionsf("%s is a symlink to %s, which is cut into shards: leave the symlink out",
				errtext.Quote(f.path), errtext.Quote(p.final(f).path))
		}
	}
	p.files = slices.DeleteFunc(p.files, func(f *file) bool { return gone[f] })
	holds := map[string]string{}
	for i, s := range shards {
		name := gguf.PartName(m.base, i+1, len(shards))
		if format == filekind.Safetensors {
			name = safetensors.ShardName(m.base, i+1, len(shards))
		}
		for _, t := range s.Tensors {
			holds[t] = path.Base(name)
		}
		p.files = append(p.files, m.file(name, s))
	}
	if format == filekind.Safetensors {
		index, err := safetensors.WriteIndex(holds, total)
		if err != nil {
			return err
		}
		name := filekind.IndexName(m.base)
		if m.index != nil {
			name = m.index.path
		}
		p.files = append(p.files, &file{path: name, text: index, size: int64(len(index))})
	}
	return p.newPaths()
}

// mayCut refuses files that can't be cut.
func (p *packer) mayCut(m *sharded) error {
	for _, f := range m.files {
		switch {
		case f.remote != nil:
			// Their sha256 are those of the whole; of shards they would be known only after all
			// was read, and what was read would have to be fetched again to be sent.
			err := optionsf("%s is on the hub, and only files of this machine are cut into shards",
				errtext.Quote(f.path))
			return hint.With(err, "hf download %s --local-dir DIR fetches it; give DIR, and %s SIZE", p.out.Repository,
				hint.Shard)
		case f.target != "":
			return optionsf("%s is a symlink, and so it can't be cut into shards", errtext.Quote(f.path))
		case f.nameHash != "":
			p.cutFrom = append(p.cutFrom, f)
		}
	}
	return nil
}

// newPaths checks the names again, of which some are gone and some new.
func (p *packer) newPaths() error {
	p.paths, p.byPath = carton.Paths{}, nil
	for _, f := range p.files {
		if err := p.paths.Add(f.path); err != nil {
			return err
		}
	}
	return nil
}

// shards cuts the files. total is how many bytes all tensors have.
func (m *sharded) shards(format string, most int64) (shards []modelfile.Shard, total int64, err error) {
	var tensors []*safetensors.Header
	var blocks []*gguf.Header
	for _, f := range m.files {
		r, err := f.open()
		if err != nil {
			return nil, 0, err
		}
		var in io.Reader = r
		if format == filekind.GGUF {
			var h *gguf.Header
			h, err = gguf.ReadHeader(in, f.size)
			blocks = append(blocks, h)
		} else {
			var h *safetensors.Header
			if h, err = safetensors.ReadHeader(in, f.size); err == nil {
				total += h.Size() - h.DataStart
			}
			tensors = append(tensors, h)
		}
		r.Close()
		if err != nil {
			return nil, 0, err
		}
	}
	if format == filekind.GGUF {
		shards, err = gguf.Shards(blocks, most)
	} else {
		shards, err = safetensors.Shards(tensors, most)
	}
	return shards, total, err
}

// file is a shard as a file of the carton.
func (m *sharded) file(name string, s modelfile.Shard) *file {
	f := &file{path: name, root: m.files[0].root, name: m.files[0].name, pieces: &pieces{list: s.Pieces, of: m.files}}
	for i := range s.Pieces {
		f.pieces.starts = append(f.pieces.starts, f.size)
		f.size += s.Pieces[i].Size()
	}
	f.pieces.size = f.size
	return f
}
