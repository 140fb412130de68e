package convert

import (
	"path"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/byname"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// category is what a layer holds, as the ModelPack specification cuts it.
type category = byname.Category

const (
	categoryConfig  = byname.Config
	categoryWeight  = byname.Weight
	categoryCode    = byname.Code
	categoryDoc     = byname.Doc
	categoryDataset = byname.Dataset
)

// categories is every category, in the order of an artifact's bundles.
var categories = byname.All

// The folders that give their members a category. Below model/ the file name
// decides; any other member is a document.
const (
	modelFolder  = "model/"
	tensorFolder = "tensor_data/"
)

// folderRules say which category a member has by its folder: the first table of
// docs/mapping.md. The first rule whose prefix fits is taken; "" is the name of
// the rule that looks at the file name.
var folderRules = []struct {
	prefix   string
	category category
}{
	{carton.ManifestName, categoryConfig},
	{carton.InfoName, categoryConfig},
	{modelFolder, ""},
	{tensorFolder, categoryDataset},
	{"", categoryDoc},
}

// largeBytes is the size from which a file is a weight by its size where no
// rule of [byname.Rules] fits its name.
const largeBytes = 16 << 20

// roles are the categories that carton.toml gives to members, by path; nil for
// none.
type roles map[string]category

// rolesOf reads the table [categories] of a carton.toml. What is no file below
// model/, or no category, is as if it were not there: the table is no part of the
// carton format, and others may have one of the same name.
func rolesOf(info *carton.Info) roles {
	var r roles
	for member, name := range info.Categories {
		if c := category(name); strings.HasPrefix(member, modelFolder) && slices.Contains(categories, c) {
			if r == nil {
				r = roles{}
			}
			r[member] = c
		}
	}
	return r
}

// of returns the category of the member with this path.
func (r roles) of(member string) category {
	if c, ok := r[member]; ok {
		return c
	}
	for _, rule := range folderRules {
		switch {
		case !fitsFolder(member, rule.prefix):
		case rule.category == "":
			c, _ := byname.Of(path.Base(member))
			return c
		default:
			return rule.category
		}
	}
	panic("unreachable: the last folder rule fits every path")
}

// fitsFolder reports whether rule is a folder that member lies in, the member
// itself, or "".
func fitsFolder(member, rule string) bool {
	if rule == "" || strings.HasSuffix(rule, "/") {
		return strings.HasPrefix(member, rule)
	}
	return member == rule
}

// isWeight reports whether a member gets a layer of its own whatever the line:
// a file below model/ that carton.toml or a rule calls a weight, or that neither
// names and that is large. Small files with unknown names (time zones, test data and the like
// come by the hundred with Python packages) are bundled as any others are.
func (r roles) isWeight(member string, size int64) bool {
	if c, ok := r[member]; ok {
		return c == categoryWeight
	}
	if !strings.HasPrefix(member, modelFolder) {
		return false
	}
	c, named := byname.Of(path.Base(member))
	return c == categoryWeight && (named || size >= largeBytes)
}
