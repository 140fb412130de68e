package gguf

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/filekind"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
)

// The keys that are asked for.
const (
	keyAlignment    = "general.alignment"
	keyArchitecture = "general.architecture"
	keyFileType     = "general.file_type"
	keyChatTemplate = "tokenizer.chat_template"

	keySplitPrefix  = "split."
	keySplitNumber  = "split.no" // from 0
	keySplitCount   = "split.count"
	keySplitTensors = "split.tensors.count" // of all parts
)

// Format is this format for who looks into files of many.
var Format = modelfile.Format{Name: filekind.GGUF, ReadHeader: readContent}

func readContent(r io.Reader, size int64) (*modelfile.Content, error) {
	h, err := ReadHeader(r, size)
	if err != nil {
		return nil, err
	}
	c := &modelfile.Content{Tensors: make([]modelfile.Tensor, len(h.Tensors)), Findings: h.Findings}
	unknown := 0
	for i, t := range h.Tensors {
		if t.Bytes < 0 {
			unknown++
		}
		c.Tensors[i] = modelfile.Tensor{
			Name: t.Name, DType: t.Type.String(), Shape: t.Shape, Bytes: t.Bytes,
			Offset: h.DataStart + t.Offset,
		}
	}
	if unknown > 0 {
		i := slices.IndexFunc(h.Tensors, func(t Tensor) bool { return t.Bytes < 0 })
		c.Notes = append(c.Notes, fmt.Sprintf(
			"has %d tensors of types that are not known here, such as %d of %s: their sizes are not known either",
			unknown, h.Tensors[i].Type, quote(h.Tensors[i].Name)))
	}
	c.Part = h.part()
	if len(h.Keys) > 0 && (c.Part == nil || c.Part.Number == 1) {
		c.Models = []modelfile.Model{h.model()}
	}
	return c, nil
}

// model is what the header says of the model.
func (h *Header) model() modelfile.Model {
	name := h.Text("general.name")
	if name == "" {
		name = strings.TrimSpace(h.Text("general.basename") + " " + h.Text("general.size_label"))
	}
	m := modelfile.Model{Name: name, Tensors: len(h.Tensors), About: modelfile.About{
		Architecture: h.Text(keyArchitecture),
		Quantization: h.Quantization(),
		License:      h.Text("general.license"),
		Description:  h.Text("general.description"),
		Homepage:     h.Text("general.url"),
	}}
	if n, ok := h.Natural(m.Architecture + ".context_length"); ok {
		m.Context = n
	}
	n, _ := h.Natural("general.base_model.count")
	for i := range min(n, maxBaseModels) {
		if url := h.Text(fmt.Sprintf("general.base_model.%d.repo_url", i)); url != "" {
			m.BaseModels = append(m.BaseModels, url)
		}
	}
	m.ChatTemplate = slices.ContainsFunc(h.Keys, func(k Key) bool {
		return k.Type == String && k.Bytes > 0 &&
			(k.Name == keyChatTemplate || strings.HasPrefix(k.Name, keyChatTemplate+"."))
	})
	for i := range h.Tensors {
		t := modelfile.Tensor{Shape: h.Tensors[i].Shape}
		m.Parameters = modelfile.Add(m.Parameters, t.Elements())
	}
	return m
}

// maxBaseModels is how many base models are listed.
const maxBaseModels = 16

// part returns which part of a split model the file is.
func (h *Header) part() *modelfile.Part {
	of, ok := h.Natural(keySplitCount)
	if !ok || of < 2 {
		return nil
	}
	number, ok := h.Natural(keySplitNumber)
	if !ok || number >= of || of > MaxParts {
		return nil
	}
	part := &modelfile.Part{Number: int(number) + 1, Of: int(of), Tensors: -1}
	if n, ok := h.Natural(keySplitTensors); ok {
		part.Tensors = n
	}
	return part
}

// Quantization says how most of the weights are stored: what general.file_type has,
// or else the type with the most bytes; "" of a file without either.
func (h *Header) Quantization() string {
	if n, ok := h.Natural(keyFileType); ok {
		if name := fileTypes[uint64(n%fileTypeGuessed)]; name != "" {
			return name
		}
	}
	bytes := map[string]int64{}
	for i := range h.Tensors {
		if name := h.Tensors[i].Type.String(); name != "" {
			bytes[name] += h.Tensors[i].Bytes
		}
	}
	names := slices.SortedFunc(maps.Keys(bytes),
		func(a, b string) int { return cmp.Or(cmp.Compare(bytes[b], bytes[a]), cmp.Compare(a, b)) })
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// Text returns a key's value, "" where there is none or it is no text, or a long
// one.
func (h *Header) Text(key string) string {
	text, _ := h.value(key).(string)
	return strings.TrimSpace(strings.ToValidUTF8(text, "�"))
}

// Natural returns a key's value, false where there is none or it is no number of
// 0 or more.
func (h *Header) Natural(key string) (int64, bool) {
	switch n := h.value(key).(type) {
	case uint64:
		return int64(n), int64(n) >= 0
	case int64:
		return n, n >= 0
	}
	return 0, false
}

func (h *Header) value(key string) any {
	for i := range h.Keys {
		if h.Keys[i].Name == key {
			return h.Keys[i].Value
		}
	}
	return nil
}
