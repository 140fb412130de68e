package safetensors

import (
	"errors"
	"fmt"

	"github.com/carton-oci/carton-oci/internal/dtype"
	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/jsonstream"
)

// parser reads the JSON of a header. What the format does not allow is an error
// where it stands, so nothing is recursive but values that are skipped.
type parser struct {
	json *jsonstream.Reader
	most int // tensors
	left int // bytes that may yet be kept
}

// entryBytes is what a tensor, or a key of the metadata, takes beside its text
// and its shape: the struct, and room in a slice or map that grows.
const entryBytes = 96

// keep counts what is kept: an entry of so many bytes of text and dimensions.
func (p *parser) keep(text, dims int) error {
	if p.left -= entryBytes + text + 8*dims; p.left < 0 {
		return errtext.Limit(ErrFormat, "names, shapes and metadata take more than %d bytes", MaxKeptBytes)
	}
	return nil
}

// header reads the whole JSON, the padding included. That no tensor occurs twice
// is check's affair, which sorts them.
func (p *parser) header(h *Header) error {
	err := p.json.Members(func(key string) error {
		if key == "__metadata__" {
			if h.Metadata != nil {
				return errors.New("__metadata__ occurs twice")
			}
			return p.metadata(h)
		}
		if len(h.Tensors) >= p.most {
			return errtext.Limit(ErrFormat, "more than %d tensors", p.most)
		}
		t := Tensor{Name: key}
		if err := p.tensor(&t, &h.Draft); err != nil {
			return fmt.Errorf("tensor %s: %w", quote(key), err)
		}
		if err := p.keep(len(key), cap(t.Shape)); err != nil {
			return err
		}
		h.Tensors = append(h.Tensors, t)
		return nil
	})
	if err != nil {
		return err
	}
	return p.json.End()
}

// metadata reads a map of strings to strings.
func (p *parser) metadata(h *Header) error {
	h.Metadata = map[string]string{}
	return p.json.Members(func(key string) error {
		if _, ok := h.Metadata[key]; ok {
			return fmt.Errorf("__metadata__: %s occurs twice", quote(key))
		}
		value, err := p.json.String()
		if err != nil {
			return fmt.Errorf("__metadata__: %s: %w", quote(key), err)
		}
		if err := p.keep(len(key)+len(value), 0); err != nil {
			return err
		}
		h.Metadata[key] = value
		return nil
	})
}

// tensor reads one entry.
func (p *parser) tensor(t *Tensor, draft *bool) error {
	var shape, offsets bool
	err := p.json.Members(func(key string) (err error) {
		switch key {
		case "dtype":
			if t.DType != "" {
				return errors.New("dtype occurs twice")
			}
			return p.dtype(t, draft)
		case "shape":
			if shape {
				return errors.New("shape occurs twice")
			}
			shape = true
			t.Shape, err = p.json.Naturals(MaxDims)
		case "data_offsets", "offsets":
			if offsets {
				return errors.New("data_offsets occurs twice")
			}
			offsets = true
			*draft = *draft || key == "offsets"
			err = p.offsets(t)
		default:
			return p.json.Skip()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case t.DType == "":
		return errors.New("has no dtype")
	case !shape:
		return errors.New("has no shape")
	case !offsets:
		return errors.New("has no data_offsets")
	}
	return nil
}

func (p *parser) dtype(t *Tensor, draft *bool) error {
	name, err := p.json.String()
	if err != nil {
		return fmt.Errorf("dtype: %w", err)
	}
	d := dtype.Named(name)
	if d == nil {
		d = dtype.Find(func(d *dtype.Type) bool { return d.ModelPack == name && inDraft(d) })
		*draft = *draft || d != nil
	}
	if d == nil || !d.Safetensors() {
		return fmt.Errorf("dtype: got %s, which the format does not have", quote(name))
	}
	t.DType = d.Name // not name itself: each would be a string of its own
	return nil
}

// inDraft reports whether the format's first draft had a type, under numpy's name,
// which is ModelPack's too.
func inDraft(d *dtype.Type) bool { return d.Numpy != "" || d.Name == "BF16" }

func (p *parser) offsets(t *Tensor) error {
	n, err := p.json.Naturals(2)
	if err != nil {
		return err
	}
	if len(n) != 2 {
		return fmt.Errorf("got %d numbers, want 2", len(n))
	}
	t.Begin, t.End = n[0], n[1]
	return nil
}
