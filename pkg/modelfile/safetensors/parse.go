package safetensors

import (
	"errors"
	"fmt"
)

// parser reads the JSON of a header. What the format does not allow is an error
// where it stands, so nothing is recursive but values that are skipped.
type parser struct {
	lex  *lexer
	most int // tensors
}

// header reads the whole JSON, the padding included.
func (p *parser) header(h *Header) error {
	err := p.object(func(key string) error {
		if key == "__metadata__" {
			if h.Metadata != nil {
				return errors.New("__metadata__ occurs twice")
			}
			return p.metadata(h)
		}
		if len(h.Tensors) >= p.most {
			return fmt.Errorf("more than %d tensors", p.most)
		}
		t := Tensor{Name: key}
		if err := p.tensor(&t, &h.Draft); err != nil {
			return fmt.Errorf("tensor %s: %w", quote(key), err)
		}
		h.Tensors = append(h.Tensors, t)
		return nil
	})
	if err != nil {
		return err
	}
	return p.lex.end()
}

// metadata reads a map of strings to strings.
func (p *parser) metadata(h *Header) error {
	h.Metadata = map[string]string{}
	return p.object(func(key string) error {
		if _, ok := h.Metadata[key]; ok {
			return fmt.Errorf("__metadata__: %s occurs twice", quote(key))
		}
		value, err := p.lex.str()
		if err != nil {
			return fmt.Errorf("__metadata__: %s: %w", quote(key), err)
		}
		h.Metadata[key] = value
		return nil
	})
}

// tensor reads one entry.
func (p *parser) tensor(t *Tensor, draft *bool) error {
	var shape, offsets bool
	err := p.object(func(key string) (err error) {
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
			t.Shape, err = p.numbers(MaxDims)
		case "data_offsets", "offsets":
			if offsets {
				return errors.New("data_offsets occurs twice")
			}
			offsets = true
			*draft = *draft || key == "offsets"
			err = p.offsets(t)
		default:
			return p.skip()
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
	name, err := p.lex.str()
	if err != nil {
		return fmt.Errorf("dtype: %w", err)
	}
	t.DType = DType(name)
	if d, ok := draftNames[name]; ok {
		t.DType, *draft = d, true
	}
	if t.DType.Bits() == 0 {
		return fmt.Errorf("dtype: got %s, which the format does not have", quote(name))
	}
	return nil
}

func (p *parser) offsets(t *Tensor) error {
	n, err := p.numbers(2)
	if err != nil {
		return err
	}
	if len(n) != 2 {
		return fmt.Errorf("got %d numbers, want 2", len(n))
	}
	t.Begin, t.End = n[0], n[1]
	return nil
}

// object reads an object and calls member behind each key.
func (p *parser) object(member func(key string) error) error {
	if err := p.lex.want('{'); err != nil {
		return err
	}
	return p.list('}', func() error {
		key, err := p.lex.str()
		if err != nil {
			return err
		}
		if err := p.lex.want(':'); err != nil {
			return err
		}
		return member(key)
	})
}

// numbers reads an array of up to limit numbers.
func (p *parser) numbers(limit int) ([]int64, error) {
	if err := p.lex.want('['); err != nil {
		return nil, err
	}
	n := []int64{}
	err := p.list(']', func() error {
		if len(n) == limit {
			return fmt.Errorf("more than %d numbers", limit)
		}
		v, err := p.lex.number()
		n = append(n, v)
		return err
	})
	return n, err
}

// list reads items separated by commas up to the byte that closes the list.
func (p *parser) list(closing byte, item func() error) error {
	c, err := p.lex.peek()
	if err != nil {
		return err
	}
	if c == closing {
		return p.lex.want(closing)
	}
	for {
		if err := item(); err != nil {
			return err
		}
		c, err := p.lex.peek()
		if err != nil {
			return err
		}
		if c == closing {
			return p.lex.want(closing)
		}
		if err := p.lex.want(','); err != nil {
			return err
		}
	}
}

// maxSkip is how deep a value may be nested that is not read.
const maxSkip = 16

// skip reads any value and forgets it.
func (p *parser) skip() error { return p.skipAt(0) }

func (p *parser) skipAt(depth int) error {
	if depth > maxSkip {
		return fmt.Errorf("nested deeper than %d", maxSkip)
	}
	c, err := p.lex.peek()
	if err != nil {
		return err
	}
	switch c {
	case '{':
		return p.object(func(string) error { return p.skipAt(depth + 1) })
	case '[':
		if err := p.lex.want('['); err != nil {
			return err
		}
		return p.list(']', func() error { return p.skipAt(depth + 1) })
	case '"':
		_, err := p.lex.str()
		return err
	}
	return p.lex.scalar()
}
