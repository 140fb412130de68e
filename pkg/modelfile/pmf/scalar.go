package pmf

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

// kind is the type of a value.
type kind string

const (
	kindNull    kind = "null"
	kindString  kind = "string"
	kindInteger kind = "integer"
	kindFloat   kind = "float"
	kindBoolean kind = "boolean"
	kindTime    kind = "timestamp"
	kindMerge   kind = "merge key"
	kindMapping kind = "mapping"
	kindList    kind = "list"
	kindTagged  kind = "tagged value"
)

// plain says what a scalar without quotes and tag is, as PyYAML's resolver does,
// which reads YAML 1.1. The first that matches counts.
// https://github.com/yaml/pyyaml/blob/6.0.1/lib/yaml/resolver.py
var plain = sync.OnceValue(func() []plainRule {
	return []plainRule{
		{
			kindBoolean,
			regexp.MustCompile(`^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$`),
		},
		{
			kindFloat, regexp.MustCompile(`^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?` +
				`|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`),
		},
		{
			kindInteger,
			regexp.MustCompile(`^(?:[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+` +
				`|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+)$`),
		},
		{kindMerge, regexp.MustCompile(`^<<$`)},
		{kindNull, regexp.MustCompile(`^(?:~|null|Null|NULL|)$`)},
		{
			kindTime, regexp.MustCompile(`^(?:[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}` +
				`:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?)$`),
		},
	}
})

type plainRule struct {
	kind kind
	rule *regexp.Regexp
}

// tags are the tags that a value may have written out.
var tags = map[string]kind{
	"!!str": kindString, "!!int": kindInteger, "!!float": kindFloat, "!!bool": kindBoolean, "!!null": kindNull,
	"!!map": kindMapping, "!!seq": kindList, "!!timestamp": kindTime,
}

// kind returns the type of a value that is there.
func (v value) kind() kind {
	explicit := v.node.Style&yaml.TaggedStyle != 0
	switch {
	case explicit && tags[v.node.ShortTag()] == "":
		return kindTagged
	case v.node.Kind == yaml.MappingNode:
		return kindMapping
	case v.node.Kind == yaml.SequenceNode:
		return kindList
	case explicit:
		return tags[v.node.ShortTag()]
	case v.node.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return kindString
	}
	for _, p := range plain() {
		if p.rule.MatchString(v.node.Value) {
			return p.kind
		}
	}
	return kindString
}

// identity tells values apart that are keys: 12 and "12" are two.
func (v value) identity() string {
	if v.kind() == kindInteger {
		if n, ok := v.parseInteger(); ok {
			return string(kindInteger) + " " + strconv.FormatInt(n, 10)
		}
	}
	return string(v.kind()) + " " + v.node.Value
}

// describe says what a value is, shortly and printably.
func (v value) describe() string {
	switch k := v.kind(); k {
	case kindNull:
		return "null"
	case kindMapping, kindList:
		return "a " + string(k)
	case kindInteger:
		return "the integer " + short(v.node.Value)
	default:
		return "the " + string(k) + " " + short(v.node.Value)
	}
}

// short writes text from outside, cut where it is long.
func short(s string) string { return errtext.Short(s) }

func (v value) wrongType(right string) {
	if v.kind() == kindTagged {
		v.violate(RuleTag, "has the tag %s: leave it out", short(v.node.Tag))
		return
	}
	v.violate(RuleType, "is %s, and must be %s", v.describe(), right)
}

// isNull reports whether a value is not there, or is null.
func (v value) isNull() bool { return !v.there() || v.kind() == kindNull }

// text returns a string; ok is false where there is none.
func (v value) text() (s string, ok bool) {
	switch {
	case !v.there():
		return "", false
	case v.kind() == kindString:
		return v.node.Value, true
	case v.node.Kind == yaml.ScalarNode && v.kind() != kindNull && v.kind() != kindTagged:
		v.violate(RuleType, "is %s, and must be a string: put it into quotes", v.describe())
	default:
		v.wrongType("a string")
	}
	return "", false
}

// textOrNull returns a string, "" for null.
func (v value) textOrNull() string {
	if v.isNull() {
		return ""
	}
	s, _ := v.text()
	return s
}

// integer returns an integer, nil where there is none. orNull accepts null.
func (v value) integer(orNull bool) *int64 {
	switch {
	case !v.there(), orNull && v.kind() == kindNull:
		return nil
	case v.kind() != kindInteger:
		v.wrongType("an integer" + orNullText(orNull))
		return nil
	}
	n, ok := v.parseInteger()
	if !ok {
		v.violate(RuleType, "%s does not fit into 64 bits", short(v.node.Value))
		return nil
	}
	return &n
}

// number returns an integer or float, nil for null.
func (v value) number() *float64 {
	switch {
	case v.isNull():
		return nil
	case v.kind() != kindInteger && v.kind() != kindFloat:
		v.wrongType("a number or null")
		return nil
	}
	f, ok := parseNumber(v.node.Value)
	if n, isInt := v.parseInteger(); v.kind() == kindInteger && isInt {
		f, ok = float64(n), true
	}
	if !ok || math.IsNaN(f) || math.IsInf(f, 0) {
		v.violate(RuleType, "%s is not a finite number", short(v.node.Value))
		return nil
	}
	return &f
}

func orNullText(orNull bool) string {
	if orNull {
		return " or null"
	}
	return ""
}

// parseInteger reads an integer of YAML 1.1: decimal, 0b…, 0x…, 0… for octal,
// with underscores anywhere, or in base 60 (1:30).
// https://yaml.org/type/int.html
func (v value) parseInteger() (int64, bool) {
	s := strings.ReplaceAll(v.node.Value, "_", "")
	if strings.Contains(s, ":") {
		f, ok := parseNumber(s)
		return int64(f), ok && f == math.Trunc(f) && math.Abs(f) < 1<<53
	}
	sign, digits := "", s
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign, digits = strings.TrimPrefix(s[:1], "+"), s[1:]
	}
	base := 10
	switch {
	case strings.HasPrefix(digits, "0b"):
		base, digits = 2, digits[2:]
	case strings.HasPrefix(digits, "0x"):
		base, digits = 16, digits[2:]
	case len(digits) > 1 && digits[0] == '0':
		base, digits = 8, digits[1:]
	}
	n, err := strconv.ParseInt(sign+digits, base, 64)
	return n, err == nil
}

// parseNumber reads an integer or a float of YAML 1.1, in base 10 or 60.
// https://yaml.org/type/float.html
func parseNumber(s string) (float64, bool) {
	s = strings.ToLower(strings.ReplaceAll(s, "_", ""))
	switch strings.TrimLeft(s, "+-") {
	case ".inf":
		return math.Inf(1), true
	case ".nan":
		return math.NaN(), true
	}
	total, sign := 0.0, 1.0
	if s != "" && (s[0] == '-' || s[0] == '+') {
		if s[0] == '-' {
			sign = -1
		}
		s = s[1:]
	}
	for part := range strings.SplitSeq(s, ":") {
		f, err := strconv.ParseFloat(part, 64)
		if err != nil {
			return 0, false
		}
		total = total*60 + f
	}
	return sign * total, true
}

// reference writes a checkpoint's reference: an integer in decimal.
func (v value) reference() string {
	if v.kind() == kindInteger {
		if n, ok := v.parseInteger(); ok {
			return strconv.FormatInt(n, 10)
		}
	}
	return v.node.Value
}
