package pack

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A README on a hub begins with a YAML document between two lines of "---", in
// which its author says what the model is.
// https://huggingface.co/docs/hub/model-cards#model-card-metadata

// baseModelField says which model was trained further, quantised or merged.
const baseModelField = "base_model"

// maxFrontMatter is how many bytes of a README are looked at.
const maxFrontMatter = 64 << 10

// readFrontMatter takes licence, name and base model from the README in the folder's root,
// where nobody gave them. What is no front matter, or not of these forms, says
// nothing.
func (p *packer) readFrontMatter() error {
	f := p.find(modelFolder + "README.md")
	if f == nil || p.keepsInfo() {
		return nil
	}
	r, err := p.final(f).open()
	if err != nil {
		return err
	}
	defer r.Close()
	head := make([]byte, min(maxFrontMatter, p.final(f).size))
	if _, err := r.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	fields := frontMatter(head)
	const from = "the front matter of README.md"
	p.basedOn([]string{fields[baseModelField]}, from)
	p.take(&p.opts.License, "license", hubLicenses[strings.ToLower(fields["license"])], from)
	p.take(&p.opts.ModelName, "model_name", cmp.Or(fields["model_name"], fields["name"]), from)
	return nil
}

// frontMatter returns the texts of a front matter by their keys. Aliases are not
// followed, and lists and mappings left alone, but for a list of one base model.
func frontMatter(head []byte) map[string]string {
	head = bytes.ReplaceAll(head, []byte("\r\n"), []byte("\n"))
	rest, ok := bytes.CutPrefix(head, []byte("---\n"))
	text, _, closed := bytes.Cut(append([]byte("\n"), rest...), []byte("\n---\n"))
	if !ok || !closed {
		return nil
	}
	var doc yaml.Node
	if yaml.Unmarshal(text, &doc) != nil || doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 ||
		doc.Content[0].Kind != yaml.MappingNode {
		return nil
	}
	fields := map[string]string{}
	pairs := doc.Content[0].Content
	for i := 0; i+1 < len(pairs); i += 2 {
		key, value := pairs[i], pairs[i+1]
		if _, twice := fields[key.Value]; twice {
			return nil // which of them is meant?
		}
		if key.Value == baseModelField && value.Kind == yaml.SequenceNode && len(value.Content) == 1 {
			value = value.Content[0]
		}
		if value.Kind == yaml.ScalarNode && value.ShortTag() == "!!str" {
			fields[key.Value] = value.Value
		}
	}
	return fields
}

// hubLicenses are SPDX's identifiers by those of the hub, which are in lower case
// and some of which SPDX doesn't have: "other", "openrail", "llama3". One that SPDX
// tells apart by "only" and "or later" says too little to choose.
// https://huggingface.co/docs/hub/repositories-licenses
var hubLicenses = func() map[string]string {
	ids := map[string]string{}
	for id := range strings.FieldsSeq(`
		AFL-3.0 Apache-2.0 Artistic-2.0 BSD-2-Clause BSD-3-Clause BSD-3-Clause-Clear BSL-1.0
		CC-BY-2.0 CC-BY-2.5 CC-BY-3.0 CC-BY-4.0 CC-BY-NC-2.0 CC-BY-NC-3.0 CC-BY-NC-4.0 CC-BY-NC-ND-3.0 CC-BY-NC-ND-4.0
		CC-BY-NC-SA-2.0 CC-BY-NC-SA-3.0 CC-BY-NC-SA-4.0 CC-BY-ND-4.0 CC-BY-SA-3.0 CC-BY-SA-4.0 CC0-1.0
		CDLA-Permissive-1.0 CDLA-Permissive-2.0 CDLA-Sharing-1.0 ECL-2.0 EPL-1.0 EPL-2.0 EUPL-1.1 EUPL-1.2
		ISC LPPL-1.3c MIT MPL-2.0 MS-PL NCSA OFL-1.1 OSL-3.0 PostgreSQL Unlicense WTFPL Zlib`) {
		ids[strings.ToLower(id)] = id
	}
	return ids
}()
