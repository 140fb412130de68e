package convert

import (
	"path"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/filekind"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// category is what a layer holds, as the ModelPack specification cuts it.
type category = filekind.Category

const (
	categoryConfig  = filekind.Config
	categoryWeight  = filekind.Weight
	categoryCode    = filekind.Code
	categoryDoc     = filekind.Doc
	categoryDataset = filekind.Dataset
)

// categories is every category, in the order of an artifact's bundles.
var categories = filekind.All

// The folders that give their members a category. Below model/ the file name
// decides; any other member is a document.
const (
	modelFolder  = "model/"
	tensorFolder = "tensor_data/"
)

// folderRules say which category a member has by its folder: the first table of
// docs/mapping.md. The first rule whose prefix fits is taken; "" is the name of
// the rule that looks at the file name, by the table of internal/filekind.
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

// of returns the category of the member with this path and size. A symlink has
// the size of what it ends at.
func (r roles) of(member string, size int64) category {
	if c, ok := r[member]; ok {
		return c
	}
	for _, rule := range folderRules {
		switch {
		case !fitsFolder(member, rule.prefix):
		case rule.category == "":
			c, _ := filekind.Of(path.Base(member), size)
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
