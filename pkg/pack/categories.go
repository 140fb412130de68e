package pack

import (
	"maps"
	"path"
	"slices"

	"github.com/carton-oci/carton-oci/internal/filekind"
	"github.com/carton-oci/carton-oci/pkg/modelfile/pmf"
)

// roles returns the categories of members whose names do not tell them: checkpoints
// and the file that a training began with are weights, configuration and build
// parameters are configuration. Who makes an artifact of the carton goes by it
// (docs/mapping.md). What no rule names is among them: it would depend on its size.
func (p *packer) roles() map[string]string {
	roles := map[string]filekind.Category{}
	p.rolesIn(p.pmf, modelFolder, roles)
	texts := map[string]string{}
	for member, role := range roles {
		if c, named := filekind.Of(path.Base(member), 0); c != role || !named {
			texts[member] = string(role)
		}
	}
	return texts
}

// rolesIn adds what a tree says of the files below folder, and the tree that it
// holds. What a symlink ends at has the symlink's role, unless it has its own. A
// file with two roles is a weight.
func (p *packer) rolesIn(m *pmf.Model, folder string, roles map[string]filekind.Category) {
	if m == nil {
		return
	}
	p.rolesIn(m.Nested, folder+pmf.InitialisationFolder+"/", roles)
	weights := slices.Clone(m.Initialisation)
	for _, c := range m.Checkpoints {
		weights = append(weights, c.File)
	}
	own := map[string]filekind.Category{}
	for _, name := range []string{m.Configuration, m.BuildParameters} {
		own[folder+name] = filekind.Config
	}
	for _, f := range weights {
		own[folder+f.Path] = filekind.Weight
	}
	targets := map[string]filekind.Category{}
	for _, member := range slices.Sorted(maps.Keys(own)) {
		f := p.find(member)
		if f == nil { // no path, or none of this tree's
			delete(own, member)
			continue
		}
		if end := p.final(f).path; targets[end] != filekind.Weight {
			targets[end] = own[member]
		}
	}
	maps.Copy(roles, targets)
	maps.Copy(roles, own)
}
