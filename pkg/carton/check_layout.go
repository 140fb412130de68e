package carton

import (
	"fmt"
	"strings"
)

// checkLayout finds what lies where the format has no place for it, and a model/
// with nothing in it. Readers pass over the one, and runners find nothing to load
// in the other.
func (c *checker) checkLayout() {
	if !hasFolder(c.members, "model") {
		c.find(SeverityWarning, ErrFormat, "model/", "holds no file: there is nothing to load")
	}
	said := map[string]bool{InfoName: true, "model/": true, "tensor_data/": true, "misc/": true}
	for _, m := range c.members {
		top, _, inside := strings.Cut(m.Path, "/")
		if inside {
			top += "/"
		}
		if !said[top] {
			said[top] = true
			c.find(SeverityWarning, ErrFormat, top,
				"is no file or folder of the format, which has carton.toml, model/, tensor_data/ and misc/")
		}
	}
}

// checkUnlisted finds files below tensor_data/ that no tensor names: nothing reads
// them.
func (c *checker) checkUnlisted(index *TensorIndex) {
	named := map[string]bool{IndexName: true}
	for _, t := range index.Tensors {
		named[t.Path()] = true
	}
	first, more := "", 0
	for _, m := range c.members {
		if !strings.HasPrefix(m.Path, tensorFolder) || named[m.Path] {
			continue
		}
		if first == "" {
			first = m.Path
			continue
		}
		more++
	}
	switch {
	case first == "":
	case more == 0:
		c.find(SeverityWarning, ErrFormat, first, "is not listed in tensor_data/index.toml")
	default:
		c.find(SeverityWarning, ErrFormat, first, "and %d more are not listed in tensor_data/index.toml", more)
	}
}

// checkSuffix wants the names that the format gives the files of tensors: .toml
// of strings, .bin of numbers.
func (c *checker) checkSuffix(i int, t Tensor) {
	want := ".bin"
	switch t.DType {
	case "", Nested:
		return
	case String:
		want = ".toml"
	}
	if !strings.HasSuffix(t.File, want) {
		at := fmt.Sprintf("tensor %d (%s)", i+1, quoteShort(t.Name))
		c.find(SeverityWarning, ErrFormat, IndexName, "%s: file: %s should end in %s, as the dtype is %s", at,
			quoteShort(t.File), want, t.DType)
	}
}

// checkDescription finds links in model_description that show nothing everywhere,
// and HTML, which is shown as text.
func (c *checker) checkDescription(info *Info) {
	for _, link := range markdownLinks(info.ModelDescription) {
		file, isMisc := strings.CutPrefix(link, miscPrefix)
		_, there := c.size("misc/" + file)
		switch {
		case isMisc && !there:
			c.find(SeverityWarning, ErrFormat, InfoName, "model_description: links to %s, and there is no such file",
				quoteShort(link))
		case !isMisc && !strings.HasPrefix(strings.ToLower(link), "https://"):
			c.find(SeverityWarning, ErrFormat, InfoName, "model_description: the link %s is neither https nor @misc/",
				quoteShort(link))
		}
	}
	if tag := markdownHTML(info.ModelDescription); tag != "" {
		c.find(SeverityWarning, ErrFormat, InfoName, "model_description: holds HTML, %s, which is shown as text",
			quoteShort(tag))
	}
}
