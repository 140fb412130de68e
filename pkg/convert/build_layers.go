package convert

import (
	"fmt"
	"path"
	"slices"
	"strconv"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// bundleFolder is where the names of tar layers lie. Reading ignores them.
const bundleFolder = ".bundles/"

// planner cuts a carton into layers. What it makes depends on paths, sizes,
// symlinks, roles and options, and on nothing else.
type planner struct {
	opts    Options
	types   mediaTypes
	members []carton.Member
	roles   roles
	byPath  map[string]*carton.Member
	extras  []*layer // they follow at the end
}

func newPlanner(members []carton.Member, info *carton.Info, opts Options, extras []*layer) *planner {
	p := &planner{opts: opts, types: families[opts.MediaTypes], members: members, roles: rolesOf(info), extras: extras}
	p.byPath = make(map[string]*carton.Member, len(members))
	for i := range members {
		p.byPath[members[i].Path] = &members[i]
	}
	return p
}

// layers returns the artifact's layers in their order: MANIFEST, carton.toml,
// tar layers by category and number, raw layers by path, extras.
func (p *planner) layers() ([]*layer, error) {
	for i := range p.members {
		if m := &p.members[i]; m.Target != "" && p.final(m) == nil {
			return nil, &carton.Error{
				Path: m.Path, Kind: carton.ErrFormat,
				Msg: "is a symlink whose target is not in the carton",
			}
		}
	}
	b, ok := p.chooseBundling()
	layers := append(p.layersFor(b), p.extras...)
	if !ok {
		return nil, hint.With(fmt.Errorf("the carton makes %d layers, want at most %d", len(layers),
			p.opts.maxLayers()),
			"bundle larger members (%s), or leave the choice to the mapping", hint.BundleBelow)
	}
	return layers, nil
}

// layersFor makes the layers of a bundling.
func (p *planner) layersFor(b bundling) []*layer {
	var head, raw []*layer
	tarsOf := map[category]*tars{}
	for _, cat := range categories {
		tarsOf[cat] = &tars{category: cat, limit: b.bundle}
	}
	if form := p.form(carton.ManifestName, 0); form == formatRaw {
		head = append(head, &layer{name: carton.ManifestName, category: categoryConfig, format: form, manifest: true})
	} else {
		l := tarsOf[categoryConfig].next(form, nil)
		l.manifest = true
		head = append(head, l)
	}
	for i := range p.members {
		m := &p.members[i]
		target := p.final(m)
		cat := p.roles.of(m.Path, target.Size)
		layer := &layer{name: m.Path, category: cat, format: formatRaw, members: []*carton.Member{m}}
		switch form := p.form(m.Path, target.Size); {
		case !p.alone(b, target):
			tarsOf[cat].bundle(m)
		case m.Target != "" && (form != formatRaw || p.form(target.Path, target.Size) != formatRaw):
			tarsOf[cat].bundle(m)
		case form == formatRaw && m.Path == carton.InfoName:
			head = append(head, layer)
		case form == formatRaw:
			raw = append(raw, layer)
		case m.Path == carton.InfoName:
			head = append(head, tarsOf[cat].next(form, []*carton.Member{m}))
		default:
			tarsOf[cat].alone = append(tarsOf[cat].alone, m)
		}
	}
	for _, cat := range categories {
		head = append(head, tarsOf[cat].layers(p.bundleFormat(cat))...)
	}
	return append(head, raw...)
}

// form returns how a member of this size with a layer of its own is stored. MANIFEST
// and carton.toml are raw wherever the family has a type for it.
func (p *planner) form(member string, size int64) format {
	always := member == carton.ManifestName || member == carton.InfoName
	if p.types.canBeRaw(p.roles.of(member, size)) && (always || p.opts.Layers == FormRaw) {
		return formatRaw
	}
	return formatTar
}

// bundleFormat returns how a category's bundles are stored. Weights are never
// compressed.
func (p *planner) bundleFormat(c category) format {
	if c == categoryWeight {
		return formatTar
	}
	return map[Compression]format{
		CompressNone: formatTar, CompressGzip: formatTarGzip, CompressZstd: formatTarZstd,
	}[p.opts.Compress]
}

// final returns the regular member that m is or ends at, nil where there is
// none.
func (p *planner) final(m *carton.Member) *carton.Member {
	return finalOf(m, func(m *carton.Member) (string, string) { return m.Path, m.Target }, p.byPath)
}

// finalOf follows symlinks from a file to what is none, nil where there is nothing.
// link returns a file's path, and its target where it is a symlink.
func finalOf[File any](f *File, link func(*File) (path, target string), byPath map[string]*File) *File {
	for range carton.MaxSymlinks + 1 {
		if f == nil {
			return nil
		}
		from, target := link(f)
		if target == "" {
			return f
		}
		f = byPath[path.Join(path.Dir(from), target)]
	}
	return nil
}

// tars are the tar layers of one category.
type tars struct {
	category category
	limit    int64 // of a bundle's content, in bytes
	count    int   // names given out
	files    []*carton.Member
	alone    []*carton.Member // each gets a tar of its own
	symlinks []*carton.Member
}

func (t *tars) bundle(m *carton.Member) {
	if m.Target != "" {
		t.symlinks = append(t.symlinks, m)
	} else {
		t.files = append(t.files, m)
	}
}

// layers returns the bundles of files, then the tars of one member, then the
// bundle of symlinks.
func (t *tars) layers(bundles format) []*layer {
	var layers []*layer
	for files := t.files; len(files) > 0; {
		n, size := 1, files[0].Size
		for n < len(files) && files[n].Size <= t.limit-size {
			size += files[n].Size
			n++
		}
		layers = append(layers, t.next(bundles, files[:n]))
		files = files[n:]
	}
	for i := range t.alone {
		layers = append(layers, t.next(formatTar, t.alone[i:i+1]))
	}
	if len(t.symlinks) > 0 {
		l := t.next(bundles, t.symlinks)
		l.links = true
		layers = append(layers, l)
	}
	return layers
}

func (t *tars) next(f format, members []*carton.Member) *layer {
	t.count++
	name := bundleFolder + string(t.category) + "-" + strconv.Itoa(t.count) + ".tar"
	return &layer{name: name, category: t.category, format: f, members: slices.Clip(members)}
}
