package pt2

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/carton-oci/carton-oci/internal/dtype"
	"github.com/carton-oci/carton-oci/internal/jsonstream"
)

// meta is a tensor's description: TensorMeta.
type meta struct {
	dtype      string // as safetensors names it, "" where it is not known
	scalarType int64  // torch's number for it
	layout     int64
	sizes      []Dim
	strides    []int64
	offset     int64
}

// readMeta reads a TensorMeta or null. Symbolic strides and offsets, which only
// values have, are left out.
func readMeta(r *jsonstream.Reader) (*meta, error) {
	if null, err := r.Null(); null || err != nil {
		return nil, err
	}
	m := &meta{}
	var typed, sizes, strides bool
	err := r.Object(func(key string) (err error) {
		switch key {
		case "dtype":
			typed = true
			if m.scalarType, err = r.Natural(); err == nil {
				m.dtype = typeOf(m.scalarType)
			}
		case "layout":
			m.layout, err = r.Natural()
		case "sizes":
			sizes = true
			m.sizes, err = readDims(r)
		case "strides":
			strides = true
			var dims []Dim
			dims, err = readDims(r)
			m.strides = make([]int64, len(dims))
			for i, d := range dims {
				m.strides[i] = d.Size
			}
		case "storage_offset":
			var d Dim
			d, err = readDim(r)
			m.offset = d.Size
		default:
			return r.Skip()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		return nil
	})
	if err == nil && (!typed || !sizes || !strides) {
		err = errors.New("has no dtype, sizes or strides")
	}
	return m, err
}

// typeOf returns the type with torch's number n, "" where there is none.
func typeOf(n int64) string {
	t := dtype.Find(func(t *dtype.Type) bool { return n != 0 && t.Torch == n })
	if t == nil {
		return ""
	}
	return t.Name
}

// symbolRepr is how torch writes a dimension that is one symbol: sympy's srepr.
var symbolRepr = regexp.MustCompile(`^Symbol\('([A-Za-z_][A-Za-z0-9_]*)'(?:, [a-z_]+=(?:True|False))*\)$`)

func readDims(r *jsonstream.Reader) ([]Dim, error) {
	dims := []Dim{}
	err := r.Array(func() error {
		if len(dims) == MaxDims {
			return fmt.Errorf("more than %d dimensions", MaxDims)
		}
		d, err := readDim(r)
		dims = append(dims, d)
		return err
	})
	return dims, err
}

// readDim reads a SymInt: {"as_int": 3} or {"as_expr": {"expr_str": "s0", …}}.
func readDim(r *jsonstream.Reader) (d Dim, err error) {
	seen := false
	err = r.Object(func(key string) (err error) {
		if seen {
			return errors.New("is two numbers in one")
		}
		seen = true
		switch key {
		case "as_int":
			d.Size, err = r.Natural()
		case "as_expr":
			d.Size = -1
			err = r.Object(func(key string) (err error) {
				if key != "expr_str" {
					return r.Skip()
				}
				d.Symbol, err = r.String()
				if one := symbolRepr.FindStringSubmatch(d.Symbol); one != nil {
					d.Symbol = strings.Clone(one[1])
				}
				return err
			})
			if err == nil && d.Symbol == "" {
				err = errors.New("has no expr_str")
			}
		default:
			err = fmt.Errorf("got %s, want as_int or as_expr", quote(key))
		}
		return err
	})
	if err == nil && !seen {
		err = errors.New("holds no number")
	}
	return d, err
}
