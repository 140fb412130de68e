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
	checkVersion(format["version"])
	producer := format["producer"].section([]string{"name", "version"}, nil)
	p := &m.model.Producer
	var named bool
	if p.Name, named = producer["name"].text(); named && !producerName.MatchString(p.Name) {
		producer["name"].violate(RuleProducerName, "%s is not a letter and then letters, digits or _", short(p.Name))
	}
	version := producer["version"].section([]string{"format", "value"}, nil)
	versionFormat, ok := version["format"].text()
	p.Version, _ = version["value"].text()
	switch {
	case !ok || !version["value"].there():
	case versionFormat != versionPEP440:
		version["format"].warn(RuleVersionFormat, "the version is not checked: its format is %s, and only %s is known",
			short(versionFormat), versionPEP440)
	case p.Version != "" && !isPEP440(p.Version) || p.Version == "" && version["value"].kind() == kindString:
		version["value"].violate(RuleVersionValue, "%s is not a version as in PEP 440", short(p.Version))
	}
}

// readFile reads a path and its hash.
func readFile(fields map[string]value) located {
	f := located{value: fields["path"], hash: fields["hash"]}
	f.Path = readPath(f.value)
	var ok bool
	if f.Hash, ok = f.hash.text(); ok && !md5Form.MatchString(f.Hash) {
		f.hash.violate(RuleHash, "%s is not 32 lower-case hex digits", short(f.Hash))
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
		v.violate(RulePath, "%s begins with ./: write it as %s", short(s), short(clean))
	case path.IsAbs(s), clean == "..", strings.HasPrefix(clean, "../"):
		v.violate(RulePath, "%s leads out of the tree: name a file in it", short(s))
	case strings.ContainsAny(s, "\\\x00"), !utf8.ValidString(s):
		v.violate(RulePath, "%s is not UTF-8, or holds a backslash: separate folders with slashes", short(s))
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
		has := map[bool]string{true: "both pmf and file", false: "neither pmf nor file"}[pmf.there()]
		v.violate(RuleInitialisation, "has %s: give one of them, or null", has)
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
		v.violate(RuleReference, "is %s, and must be a string or an integer", v.describe())
		return false
	}
	return true
}
