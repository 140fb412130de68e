package safetensors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/carton-oci/carton-oci/internal/jsonstream"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
)

// entryOverhead is what an entry of a header takes beside its name and its shape, at
// most, and headerOverhead what a header does beside entries and metadata, in bytes.
const (
	entryOverhead  = 96
	headerOverhead = 64
)

// ShardName returns the name of one of the files of a sharded model, as the tools of
// the Hugging Face hub give it: "model", 1, 3 is model-00001-of-00003.safetensors.
// https://github.com/huggingface/huggingface_hub/blob/v0.34.0/src/huggingface_hub/serialization/_torch.py
func ShardName(base string, number, of int) string {
	return fmt.Sprintf("%s-%05d-of-%05d.safetensors", base, number, of)
}

// Shards cuts a model, the files with these headers, at its tensors into files of no
// more than most bytes; one that holds a single tensor may be larger. Tensors stay in the
// order of the files, and of their bytes. Each file has the metadata of the first
// that has any. Of a model that fits into one file there is one shard.
func Shards(headers []*Header, most int64) ([]modelfile.Shard, error) {
	type place struct {
		Tensor
		file int
	}
	var all []place
	var metadata map[string]string
	names := map[string]bool{}
	for i, h := range headers {
		if metadata == nil {
			metadata = h.Metadata
		}
		for _, t := range h.Tensors {
			if names[t.Name] {
				return nil, fmt.Errorf("%w: tensor %s is in two of the files", ErrFormat, quote(t.Name))
			}
			names[t.Name] = true
			t.Begin, t.End = h.DataStart+t.Begin, h.DataStart+t.End
			all = append(all, place{t, i})
		}
	}
	var text bytes.Buffer
	if err := WriteHeader(&text, metadata, nil); err != nil {
		return nil, err
	}
	room := most - int64(text.Len()) - headerOverhead
	cost := make([]int64, len(all))
	for i, t := range all {
		name, _ := json.Marshal(t.Name) // a string always can be
		cost[i] = t.End - t.Begin + int64(len(name)+20*len(t.Shape)) + entryOverhead
	}
	var shards []modelfile.Shard
	for _, numbers := range modelfile.Cut(cost, room, room) {
		tensors, where := make([]Tensor, len(numbers)), map[string]place{}
		for i, n := range numbers {
			tensors[i], where[all[n].Name] = all[n].Tensor, all[n]
		}
		var head bytes.Buffer
		if err := WriteHeader(&head, metadata, tensors); err != nil {
			return nil, err
		}
		written, err := ReadHeader(bytes.NewReader(head.Bytes()), -1)
		if err != nil {
			return nil, err
		}
		s := modelfile.Shard{Pieces: []modelfile.Piece{{Text: head.Bytes()}}}
		for _, t := range written.Tensors {
			from := where[t.Name]
			s.Tensors = append(s.Tensors, t.Name)
			s.Pieces = modelfile.AddSpan(s.Pieces, from.file, from.Begin, from.End-from.Begin)
		}
		shards = append(shards, s)
	}
	return shards, nil
}

// WriteIndex returns the index of a sharded model: which file holds which tensor, and
// how many bytes all tensors have. It is what the hub's tools write, its keys sorted.
func WriteIndex(files map[string]string, totalSize int64) ([]byte, error) {
	var index struct {
		Metadata struct {
			TotalSize int64 `json:"total_size"`
		} `json:"metadata"`
		Files map[string]string `json:"weight_map"`
	}
	index.Metadata.TotalSize, index.Files = totalSize, maps.Clone(files)
	b, err := jsonstream.Marshal(index, "  ")
	return append(b, '\n'), err
}
