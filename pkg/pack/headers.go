package pack

import (
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/carton-oci/carton-oci/internal/hubname"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
	"github.com/carton-oci/carton-oci/pkg/modelfile/gguf"
)

// said is what the header of a model file says of its model.
type said struct {
	name    string // of the member
	models  []modelfile.Model
	part    *modelfile.Part
	tensors int
}

// set is what the files of one split model have in common; of any other the name.
func (s *said) set() string {
	all, _, _, ok := gguf.ParsePartName(path.Base(s.name))
	if !ok {
		return s.name
	}
	return path.Join(path.Dir(s.name), all)
}

// checkParts refuses a split model that lacks parts, or whose parts are not of one
// model: whoever loads it is told so only after it was fetched.
func (p *packer) checkParts() error {
	sets := map[string][]gguf.SetFile{}
	var firsts []said // of each set
	for _, s := range p.said {
		set := s.set()
		if s.part == nil && set == s.name {
			continue
		}
		if sets[set] == nil {
			firsts = append(firsts, s)
		}
		sets[set] = append(sets[set], gguf.SetFile{Name: path.Base(s.name), Part: s.part, Tensors: s.tensors})
	}
	for _, first := range firsts {
		if err := gguf.CheckSet(sets[first.set()], 0); err != nil {
			if err := p.broken(first.name, carton.ErrFormat,
				fmt.Errorf("is part of a split model: %w", err)); err != nil {
				return err
			}
		}
	}
	return nil
}

// fillFromHeaders takes from the headers of model files what nobody gave and no
// README says. Of several files those that say a thing must say the same.
func (p *packer) fillFromHeaders() error {
	if p.keepsInfo() {
		return nil
	}
	take := func(to *string, field string, of func(m *modelfile.Model) string) {
		value, from := p.agreed(of)
		p.take(to, field, value, "the header of "+from)
	}
	take(&p.opts.ModelName, "model_name", func(m *modelfile.Model) string { return m.Name })
	take(&p.opts.License, "license", func(m *modelfile.Model) string { return hubLicenses[strings.ToLower(m.License)] })
	take(&p.opts.ShortDescription, "short_description", func(m *modelfile.Model) string {
		if utf8.RuneCountInString(m.Description) > carton.ShortDescriptionChars ||
			strings.Contains(m.Description, "\n") {
			return ""
		}
		return m.Description
	})
	take(&p.opts.Homepage, "homepage", func(m *modelfile.Model) string {
		if !strings.HasPrefix(m.Homepage, "https://") {
			return ""
		}
		return m.Homepage
	})
	base, from := p.agreed(func(m *modelfile.Model) string { return strings.Join(m.BaseModels, "\n") })
	p.basedOn(strings.Split(base, "\n"), "the header of "+from)
	return nil
}

// agreed returns what all headers say that say anything, and the name of the first
// file; "" where two say different things.
func (p *packer) agreed(of func(m *modelfile.Model) string) (value, from string) {
	for _, s := range p.said {
		for i := range s.models {
			switch v := of(&s.models[i]); {
			case v == "" || v == value:
			case value != "":
				return "", ""
			default:
				value, from = v, path.Base(s.name)
			}
		}
	}
	return value, from
}

// baseAnnotation is OCI's name for what a thing was made of.
// https://github.com/opencontainers/image-spec/blob/v1.1.1/annotations.md
const baseAnnotation = "org.opencontainers.image.base.name"

// basedOn says which model this one was made of, where it is one: as a reference,
// "huggingface.co/org/name". What is no such name, a path say, says nothing.
func (p *packer) basedOn(models []string, from string) {
	if len(models) != 1 || p.keepsInfo() || p.opts.Annotations[baseAnnotation] != "" {
		return
	}
	name := strings.TrimPrefix(models[0], "https://huggingface.co/")
	if !hubname.IsRepository(name) {
		return
	}
	value := "huggingface.co/" + name
	annotations := map[string]string{baseAnnotation: value}
	for k, v := range p.opts.Annotations {
		annotations[k] = v
	}
	p.opts.Annotations = annotations
	p.fill("annotations."+baseAnnotation, value, from)
}
