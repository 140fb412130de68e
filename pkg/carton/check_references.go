package carton

import (
	"fmt"
	"slices"
	"strings"
)

// checkReferences finds names in self tests and examples that nothing declares,
// and references to nothing. index is nil where it could not be read.
func (c *checker) checkReferences(info *Info, index *TensorIndex) {
	inputs, outputs := specNames(info.Inputs), specNames(info.Outputs)
	c.checkDeclared(info)
	for _, kind := range testKinds {
		for i, t := range *kind.of(info) {
			at := fmt.Sprintf("%s %d", kind.table, i+1)
			atInputs, atOutputs := at+": inputs", at+": "+kind.outputs
			c.checkTable(atInputs, t.Inputs, inputs, "input", kind.undeclared)
			c.checkTable(atOutputs, t.Outputs, outputs, "output", kind.undeclared)
			c.checkThere(atInputs, t.Inputs, index)
			c.checkThere(atOutputs, t.Outputs, index)
			c.checkValues(at, info, index, t.Inputs, t.Outputs)
		}
	}
}

// checkDeclared wants inputs and outputs declared together.
func (c *checker) checkDeclared(info *Info) {
	const form = "no [[%s]] is declared beside [[%s]]: the format wants all inputs and outputs, or none"
	switch {
	case len(info.Inputs) == 0 && len(info.Outputs) > 0:
		c.find(SeverityWarning, ErrFormat, InfoName, form, "input", "output")
	case len(info.Outputs) == 0 && len(info.Inputs) > 0:
		c.find(SeverityWarning, ErrFormat, InfoName, form, "output", "input")
	}
}

// checkValues compares the tensors of one test with what is declared: the types,
// the shapes, and that a symbol has one value wherever it occurs. Of ragged
// tensors, whose parts have shapes of their own, the type alone is compared.
func (c *checker) checkValues(at string, info *Info, index *TensorIndex, inputs, outputs map[string]string) {
	if index == nil {
		return
	}
	symbols := map[string]string{} // to what they stand for in this test
	for _, side := range []struct {
		specs []TensorSpec
		refs  map[string]string
		what  string
	}{{info.Inputs, inputs, "input"}, {info.Outputs, outputs, "output"}} {
		for _, spec := range side.specs {
			name, isTensor := strings.CutPrefix(side.refs[spec.Name], tensorPrefix)
			t, there := index.Lookup(name)
			if !isTensor || !there {
				continue
			}
			if why := mismatch(spec, t, index, symbols); why != "" {
				c.find(SeverityWarning, ErrFormat, InfoName, "%s: the %s %s: %s", at, side.what, quoteShort(spec.Name),
					why)
			}
		}
	}
}

// mismatch says in what a tensor is not as declared, "" for nothing.
func mismatch(spec TensorSpec, t Tensor, index *TensorIndex, symbols map[string]string) string {
	parts := []Tensor{t}
	if t.DType == Nested {
		parts = nil
		for _, name := range t.Inner {
			if inner, ok := index.Lookup(name); ok {
				parts = append(parts, inner)
			}
		}
	}
	for _, p := range parts {
		if p.DType != spec.DType && p.DType != "" && spec.DType != "" {
			return fmt.Sprintf("the tensor is %s, and %s is declared", p.DType, spec.DType)
		}
	}
	if t.DType == Nested || t.Shape == nil {
		return ""
	}
	if !spec.Shape.fits(t.Shape, symbols) {
		return fmt.Sprintf("the tensor has the shape %s, and %s is declared%s", showLengths(t.Shape), spec.Shape,
			known(spec.Shape, symbols))
	}
	return ""
}

// fits reports whether a shape can be that which is declared, where symbols have
// these values, and adds the values that it gives to others.
func (s Shape) fits(shape []int64, symbols map[string]string) bool {
	if s.Symbol != "" {
		return same(s.Symbol, showLengths(shape), symbols)
	}
	if len(s.Dims) != len(shape) {
		return false
	}
	for i, d := range s.Dims {
		if d.Symbol == "" && d.Size != shape[i] || d.Symbol != "" && !same(d.Symbol, fmt.Sprint(shape[i]), symbols) {
			return false
		}
	}
	return true
}

// same reports whether a symbol has that value, or none yet.
func same(symbol, value string, symbols map[string]string) bool {
	old, ok := symbols[symbol]
	if !ok && symbol != "*" {
		symbols[symbol] = value
	}
	return !ok || old == value
}

// known says what the symbols of a shape stand for already.
func known(s Shape, symbols map[string]string) string {
	var values []string
	for _, d := range append([]Dim{{Symbol: s.Symbol}}, s.Dims...) {
		if v, ok := symbols[d.Symbol]; ok {
			values = append(values, d.Symbol+" is "+v)
		}
	}
	if len(values) == 0 {
		return ""
	}
	slices.Sort(values)
	return ", where " + strings.Join(slices.Compact(values), " and ")
}

func showLengths(shape []int64) string {
	return "[" + strings.ReplaceAll(strings.Trim(fmt.Sprint(shape), "[]"), " ", ", ") + "]"
}

// checkTable wants the names of a test or an example to be declared.
func (c *checker) checkTable(at string, refs map[string]string, declared map[string]bool, what string, s Severity) {
	for _, name := range sortedKeys(refs) {
		if !declared[name] {
			c.find(s, ErrFormat, InfoName, "%s: the model declares no %s %s", at, what, quoteShort(name))
		}
	}
}

// checkThere wants what a test or an example refers to. A part of a nested tensor
// is no tensor to loaders.
func (c *checker) checkThere(at string, refs map[string]string, index *TensorIndex) {
	for _, name := range sortedKeys(refs) {
		ref := refs[name]
		if tensor, ok := strings.CutPrefix(ref, tensorPrefix); ok && index != nil {
			if _, there := index.Lookup(tensor); !there {
				c.find(SeverityError, ErrFormat, InfoName, "%s.%s: tensor_data/index.toml has no tensor %s", at,
					quotePath(name), quoteShort(tensor))
			} else if index.inner[tensor] {
				c.find(SeverityLoader, ErrFormat, InfoName, loaderFails+"%s.%s: %s is a part of a nested tensor", at,
					quotePath(name), quoteShort(tensor))
			}
		}
		if file, ok := strings.CutPrefix(ref, miscPrefix); ok && CheckPath("misc/"+file) == nil {
			if _, there := c.size("misc/" + file); !there {
				c.find(SeverityError, ErrFormat, InfoName, "%s.%s: there is no file %s", at, quotePath(name),
					quotePath("misc/"+file))
			}
		}
	}
}

func specNames(specs []TensorSpec) map[string]bool {
	names := map[string]bool{}
	for _, s := range specs {
		names[s.Name] = true
	}
	return names
}
