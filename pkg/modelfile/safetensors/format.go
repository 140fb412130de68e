package safetensors

import (
	"encoding/binary"
	"io"

	"github.com/carton-oci/carton-oci/internal/filekind"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
)

// Format is this format for who looks into files of many.
var Format = modelfile.Format{Name: filekind.Safetensors, ReadHeader: readContent, HeaderBytes: headerBytes}

func readContent(r io.Reader, size int64) (*modelfile.Content, error) {
	h, err := ReadHeader(r, size)
	if err != nil {
		return nil, err
	}
	c := &modelfile.Content{Tensors: make([]modelfile.Tensor, len(h.Tensors))}
	for i, t := range h.Tensors {
		c.Tensors[i] = modelfile.Tensor{
			Name: t.Name, DType: t.DType, Shape: t.Shape, Bytes: t.End - t.Begin,
			Offset: h.DataStart + t.Begin,
		}
	}
	if h.Draft {
		c.Notes = []string{"is written as the format's first draft has it"}
	}
	return c, nil
}

// headerBytes returns where a header ends; of one that is too long to be read,
// where it begins.
func headerBytes(first [8]byte) int64 {
	if n := binary.LittleEndian.Uint64(first[:]); n <= MaxHeaderBytes {
		return 8 + int64(n)
	}
	return 8
}
