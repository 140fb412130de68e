package safetensors

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/jsonstream"
)

const (
	// IndexName is the index's usual name, beside the files that it names.
	IndexName = "model.safetensors.index.json"
	// MaxIndexBytes is the longest index, several times that of the largest known
	// models.
	MaxIndexBytes = 32 << 20
	// MaxFileName is the longest name of a file, in bytes.
	MaxFileName = 255
)

// Index is a model.safetensors.index.json: which file of a sharded model holds
// which tensor.
// https://huggingface.co/docs/transformers/v4.57.1/en/big_models
type Index struct {
	// Files maps a tensor's name to the name of its file, which lies beside the
	// index.
	Files map[string]string
	// TotalSize is what the index says that all tensors have together, in bytes,
	// -1 where it does not say. It may be wrong: shared tensors are counted
	// differently.
	TotalSize int64
}

// Shards returns the names of the files, sorted.
func (x *Index) Shards() []string {
	return slices.Compact(slices.Sorted(maps.Values(x.Files)))
}

// ReadIndex reads an index. Duplicate keys, names that are no plain file names,
// and anything over the limits are ErrFormat; an error of r is returned wrapped.
func ReadIndex(r io.Reader) (*Index, error) {
	in := jsonstream.New(io.LimitReader(r, MaxIndexBytes))
	x := &Index{TotalSize: -1}
	err := x.read(in)
	if source := in.SourceError(); source != nil {
		return nil, fmt.Errorf("read index: %w", source)
	}
	if err == nil && in.Offset() == MaxIndexBytes {
		err = errtext.Limit(ErrFormat, "longer than %d bytes", MaxIndexBytes)
	}
	if errtext.IsLimit(err) {
		return nil, fmt.Errorf("index: %w", err)
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("%w: index: %w", ErrFormat, err)
	}
	return x, nil
}

func (x *Index) read(r *jsonstream.Reader) error {
	err := r.Object(func(key string) (err error) {
		switch key {
		case "weight_map":
			err = x.readMap(r)
		case "metadata":
			if null, err := r.Null(); null || err != nil {
				return err
			}
			err = r.Object(func(key string) (err error) {
				if key != "total_size" {
					return r.Skip()
				}
				x.TotalSize, err = readSize(r)
				return err
			})
		default:
			return r.Skip()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case x.Files == nil:
		return errors.New("has no weight_map")
	}
	return r.End()
}

func (x *Index) readMap(r *jsonstream.Reader) error {
	x.Files = map[string]string{}
	shards := map[string]string{} // each name once, however many tensors have it
	return r.Members(func(tensor string) error {
		if _, ok := x.Files[tensor]; ok {
			return fmt.Errorf("tensor %s occurs twice", quote(tensor))
		}
		if len(x.Files) == MaxTensors {
			return errtext.Limit(ErrFormat, "more than %d tensors", MaxTensors)
		}
		file, err := r.String()
		if err != nil {
			return fmt.Errorf("tensor %s: %w", quote(tensor), err)
		}
		name, ok := shards[file]
		if !ok {
			if err := checkFileName(file); err != nil {
				return fmt.Errorf("tensor %s: file %s %w", quote(tensor), quote(file), err)
			}
			name, shards[file] = file, file
		}
		x.Files[tensor] = name
		return nil
	})
}

// checkFileName refuses what is no name of a file in the index's own folder.
func checkFileName(name string) error {
	switch {
	case name == "" || name == "." || name == "..":
		return errors.New("is no file name")
	case len(name) > MaxFileName:
		return fmt.Errorf("has %d bytes, and a name at most %d", len(name), MaxFileName)
	case strings.ContainsAny(name, `/\`) || path.Base(name) != name:
		return errors.New("is a path, and must be the name of a file beside the index")
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return errors.New("holds a control character")
	}
	return nil
}

// readSize reads a whole number, which some writers write as a float: "1.5e10",
// "15000000000.0".
func readSize(r *jsonstream.Reader) (int64, error) {
	w, err := r.Number()
	if err != nil {
		return 0, err
	}
	if n, err := strconv.ParseInt(w, 10, 64); err == nil && n >= 0 {
		return n, nil
	}
	f, err := strconv.ParseFloat(w, 64)
	if err != nil || f != math.Trunc(f) || f < 0 || f > maxEnd {
		return 0, fmt.Errorf("total_size: got %s, want a whole number of bytes", quote(w))
	}
	return int64(f), nil
}
