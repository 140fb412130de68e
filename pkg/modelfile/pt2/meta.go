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
	var strides []Dim
	var offset Dim
	dims := func(to *[]Dim) func() error { return into(to, func() ([]Dim, error) { return readDims(r) }) }
	m.scalarType = -1
	err := readFields(r, map[string]func() error{
		"dtype":          into(&m.scalarType, r.Natural),
		"layout":         into(&m.layout, r.Natural),
		"sizes":          dims(&m.sizes),
		"strides":        dims(&strides),
		"storage_offset": into(&offset, func() (Dim, error) { return readDim(r) }),
	})
	if err == nil && (m.scalarType < 0 || m.sizes == nil || strides == nil) {
		err = errors.New("has no dtype, sizes or strides")
	}
	m.dtype, m.offset, m.strides = typeOf(m.scalarType), offset.Size, make([]int64, len(strides))
	for i, d := range strides {
		m.strides[i] = d.Size
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
			err = fmt.Errorf("holds %s, and neither as_int nor as_expr", quote(key))
		}
		return err
	})
	if err == nil && !seen {
		err = errors.New("holds no number")
	}
	return d, err
}
