package convert

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// maxMembersBytes is what the run.carton.members annotations of an artifact may
// have together. Above it none is written, so that the image manifest stays
// within what registries take.
const maxMembersBytes = 2 << 20

// manifestLine is the line that stands for MANIFEST itself.
const manifestLine = 0

// sizedLine is one item of a run.carton.members annotation: a member, by its
// line in MANIFEST, and its size in bytes.
type sizedLine struct {
	line int
	size int64
}

// memberLists returns the run.carton.members annotation of each layer, "" for
// none.
func memberLists(m *carton.Manifest, layers []*layer) []string {
	lists := make([]string, len(layers))
	total := 0
	for i, l := range layers {
		if l.format == formatRaw || l.links {
			continue
		}
		items := make([]sizedLine, 0, len(l.members)+1)
		if l.manifest { // only carton.toml can follow, and it does
			items = append(items, sizedLine{line: manifestLine, size: m.Len()})
		}
		for _, member := range l.members {
			e, _ := m.Lookup(member.Path)
			items = append(items, sizedLine{line: e.Line, size: member.Size})
		}
		lists[i] = encodeMembers(items)
		total += len(lists[i])
	}
	if total > maxMembersBytes {
		clear(lists)
	}
	return lists
}

// encodeMembers writes the value of run.carton.members: items in the order of
// the tar, comma-separated, each LINE:SIZE, or SIZE alone where LINE is the
// previous item's plus one. Both are decimal. LINE counts MANIFEST's lines from
// 1; 0 is MANIFEST itself.
func encodeMembers(items []sizedLine) string {
	var b []byte
	for i, it := range items {
		if i > 0 {
			b = append(b, ',')
		}
		if i == 0 || it.line != items[i-1].line+1 {
			b = strconv.AppendInt(b, int64(it.line), 10)
			b = append(b, ':')
		}
		b = strconv.AppendInt(b, it.size, 10)
	}
	return string(b)
}

// parseMembers reads what encodeMembers writes, and nothing else: one list has
// one text. Lines are not looked up yet. Errors wrap layout.ErrFormat.
func parseMembers(value string) ([]sizedLine, error) {
	n := strings.Count(value, ",") + 1
	if n > carton.MaxMembers+1 {
		return nil, fmt.Errorf("%w: lists more than %d members", layout.ErrLimit, carton.MaxMembers)
	}
	items := make([]sizedLine, 0, n)
	next := -1
	for text := range strings.SplitSeq(value, ",") {
		line, size, explicit := strings.Cut(text, ":")
		if !explicit {
			line, size = "", text
		}
		it := sizedLine{line: next}
		switch n, err := decimal(line); {
		case !explicit && next < 0:
			return nil, fmt.Errorf("%w: the first item is %.32q, want LINE:SIZE", layout.ErrFormat, text)
		case !explicit:
		case err != nil || n > carton.MaxMembers:
			return nil, fmt.Errorf("%w: the item %.32q has no line", layout.ErrFormat, text)
		case int(n) == next:
			return nil, fmt.Errorf("%w: the item %.32q names a line that follows by itself", layout.ErrFormat, text)
		default:
			it.line = int(n)
		}
		var err error
		if it.size, err = decimal(size); err != nil {
			return nil, fmt.Errorf("%w: the item %.32q has no size", layout.ErrFormat, text)
		}
		items = append(items, it)
		next = it.line + 1
	}
	return items, nil
}

// decimal reads what strconv writes for a number that is not negative: no sign,
// no leading zero.
func decimal(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err == nil && strconv.FormatInt(n, 10) != s || n < 0 {
		return 0, strconv.ErrSyntax
	}
	return n, err
}
