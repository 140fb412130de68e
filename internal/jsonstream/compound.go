package jsonstream

import (
	"fmt"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

const (
	// MaxSkipDepth is how deep a value may be nested that is skipped.
	MaxSkipDepth = 64
	// MaxKeys is how much memory the keys may take that are compared at one time,
	// those of an object and of the objects around it, in bytes: their own and
	// keyCost each.
	MaxKeys = 32 << 20
	keyCost = 64
)

// Object consumes an object and calls member behind each key; member consumes
// the key's value. No key may occur twice.
func (r *Reader) Object(member func(key string) error) error {
	seen := map[string]bool{}
	before := r.keys
	err := r.Members(func(key string) error {
		if seen[key] {
			return fmt.Errorf("the key %s occurs twice", errtext.Quoted(key))
		}
		seen[key] = true
		if r.keys += keyCost + len(key); r.keys > MaxKeys {
			return fmt.Errorf("the keys of an object take more than %d bytes", MaxKeys)
		}
		return member(key)
	})
	r.keys = before
	return err
}

// Members is [Reader.Object] without the check for duplicate keys, for a caller
// that has its own.
func (r *Reader) Members(member func(key string) error) error {
	if err := r.want('{'); err != nil {
		return err
	}
	return r.list('}', func() error {
		key, err := r.String()
		if err != nil {
			return err
		}
		if err := r.want(':'); err != nil {
			return err
		}
		return member(key)
	})
}

// Array consumes an array and calls item for each value, which item consumes.
func (r *Reader) Array(item func() error) error {
	if err := r.want('['); err != nil {
		return err
	}
	return r.list(']', item)
}

// Naturals consumes an array of at most limit whole numbers, none of them
// negative.
func (r *Reader) Naturals(limit int) ([]int64, error) {
	n := []int64{}
	err := r.Array(func() error {
		if len(n) == limit {
			return fmt.Errorf("more than %d numbers", limit)
		}
		v, err := r.Natural()
		n = append(n, v)
		return err
	})
	return n, err
}

// list reads items separated by commas up to the byte that closes the list.
func (r *Reader) list(closing byte, item func() error) error {
	c, err := r.Peek()
	if err != nil {
		return err
	}
	if c == closing {
		return r.want(closing)
	}
	for {
		if err := item(); err != nil {
			return err
		}
		c, err := r.Peek()
		if err != nil {
			return err
		}
		if c == closing {
			return r.want(closing)
		}
		if err := r.want(','); err != nil {
			return err
		}
	}
}

// Skip consumes any value and forgets it. What is skipped is not believed, so
// its keys are not compared.
func (r *Reader) Skip() error { return r.skip(0) }

func (r *Reader) skip(depth int) error {
	if depth > MaxSkipDepth {
		return fmt.Errorf("nested deeper than %d", MaxSkipDepth)
	}
	c, err := r.Peek()
	if err != nil {
		return err
	}
	switch c {
	case '{':
		_ = r.want('{') // it is there
		return r.list('}', func() error {
			if err := r.skipString(); err != nil {
				return err
			}
			if err := r.want(':'); err != nil {
				return err
			}
			return r.skip(depth + 1)
		})
	case '[':
		return r.Array(func() error { return r.skip(depth + 1) })
	case '"':
		return r.skipString()
	}
	return r.scalar()
}
