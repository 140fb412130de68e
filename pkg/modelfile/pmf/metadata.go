package pmf

import (
	"path"
	"regexp"
	"strings"
	"unicode/utf8"
)

// metadata is what a document says, with the places where it says it.
type metadata struct {
	model         *Model
	configuration located
	checkpoints   []checkpoint
	init          initialisation
}

// located is a path of the document, and where it stands there.
type located struct {
	File
	value value // of the path
	hash  value
}

type checkpoint struct {
	located
	reference string // as an identity: "integer 12", "string 12"
	at        value  // the key
	epoch     *int64
}

// initForm is one of the three forms of initialisation.
type initForm int

const (
	initNull initForm = iota
	initPMF
	initFile
	initBroken // neither: what it says is a violation already
)

type initialisation struct {
	form initForm
	at   value
	located
	name, id  value
	reference value // pmf's checkpoint
}

var (
	producerName = regexp.MustCompile(`^[a-zA-Z][0-9a-zA-Z_]+$`)
	md5Form      = regexp.MustCompile(`^[a-f0-9]{32}$`)
)

// readMetadata reads a document along its schema.
// (plums/model/validation/metadata.py)
func (r *report) readMetadata(raw []byte) *metadata {
	m := &metadata{model: &Model{}}
	doc := r.document(raw)
	if !doc.there() {
		return m
	}
	root := doc.section([]string{"format", "model"}, nil)
	m.readFormat(root["format"])
	model := root["model"].section([]string{"name", "id", "initialisation", "training", "configuration"}, nil)
	m.model.Name = model["name"].textOrNull()
	m.model.ID, _ = model["id"].text()
	conf := model["configuration"].section([]string{"path", "hash"}, nil)
	m.configuration = readFile(conf)
	m.readInitialisation(model["initialisation"])
	m.readTraining(model["training"])
	return m
}

func (m *metadata) readFormat(v value) {
	format := v.section([]string{"producer", "version"}, nil)
	if s, ok := format["version"].text(); ok && s != FormatVersion {
		format["version"].violate(RuleFormatVersion, "got %s, want %s", short(s), FormatVersion)
	}
	producer := format["producer"].section([]string{"name", "version"}, nil)
	p := &m.model.Producer
	var ok bool
	if p.Name, ok = producer["name"].text(); ok && !producerName.MatchString(p.Name) {
		producer["name"].violate(RuleProducerName, "got %s, want a letter and then letters, digits or _", short(p.Name))
	}
	version := producer["version"].section([]string{"format", "value"}, nil)
	p.VersionFormat, ok = version["format"].text()
	p.Version, _ = version["value"].text()
	switch {
	case !ok || !version["value"].there():
	case p.VersionFormat != versionPEP440:
		version["format"].warn(RuleVersionFormat, "got %s, want %s: the version is not checked", short(p.VersionFormat), versionPEP440)
	case p.Version != "" && !pep440.MatchString(p.Version) || p.Version == "" && version["value"].kind() == kindString:
		version["value"].violate(RuleVersionValue, "got %s, want a version as in PEP 440", short(p.Version))
	}
}

// readFile reads a path and its hash.
func readFile(fields map[string]value) located {
	f := located{value: fields["path"], hash: fields["hash"]}
	f.Path = readPath(f.value)
	var ok bool
	if f.Hash, ok = f.hash.text(); ok && !md5Form.MatchString(f.Hash) {
		f.hash.violate(RuleHash, "got %s, want 32 lower-case hex digits", short(f.Hash))
		f.Hash = ""
	}
	return f
}

// readPath reads a path; "" where it is none. "." is one.
func readPath(v value) string {
	s, ok := v.text()
	if !ok {
		return ""
	}
	clean := path.Clean(s)
	switch {
	case s == "":
		v.violate(RulePath, "is empty")
	case strings.HasPrefix(s, "./"):
		v.violate(RulePath, "got %s, want %s", short(s), short(clean))
	case path.IsAbs(s), clean == "..", strings.HasPrefix(clean, "../"):
		v.violate(RulePath, "got %s, want a path inside the tree", short(s))
	case strings.ContainsAny(s, "\\\x00"), !utf8.ValidString(s):
		v.violate(RulePath, "got %s, want a path with slashes", short(s))
	default:
		return clean
	}
	return ""
}

// readInitialisation reads one of the three forms: null, pmf, file.
func (m *metadata) readInitialisation(v value) {
	in := &m.init
	in.at = v
	if v.isNull() {
		return
	}
	in.form = initBroken
	form := v.section(nil, []string{"pmf", "file"})
	pmf, file := form["pmf"], form["file"]
	switch {
	case v.kind() != kindMapping:
	case pmf.there() == file.there():
		v.violate(RuleInitialisation, "got %s, want null, pmf or file", map[bool]string{true: "both pmf and file", false: "neither pmf nor file"}[pmf.there()])
	case pmf.there():
		fields := pmf.section([]string{"id", "checkpoint", "path"}, []string{"name"})
		in.name, in.id, in.reference = fields["name"], fields["id"], fields["checkpoint"]
		in.name.textOrNull()
		in.id.text()
		checkReference(in.reference)
		in.value = fields["path"]
		in.Path = readPath(in.value)
		in.form = initPMF
	default:
		fields := file.section([]string{"path", "hash"}, []string{"name"})
		fields["name"].textOrNull()
		in.located = readFile(fields)
		in.form = initFile
	}
}

// checkReference wants a string or an integer.
func checkReference(v value) bool {
	if !v.there() {
		return false
	}
	if k := v.kind(); k != kindString && k != kindInteger {
		v.violate(RuleReference, "got %s, want a string or an integer", v.describe())
		return false
	}
	return true
}
