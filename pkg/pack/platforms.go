package pack

import (
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/pkg/modelfile/pt2"
)

// platformOf returns the target triple that a model was compiled for, by what
// AOTInductor notes: Python's sys.platform and platform.machine(). "" where they
// say nothing that is known.
func platformOf(c *pt2.Package) string {
	machine := map[string]string{
		"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64",
		"arm64": "aarch64",
	}[strings.ToLower(c.Metadata["AOTI_MACHINE"])]
	system := map[string]string{
		"linux": "unknown-linux-gnu", "darwin": "apple-darwin",
		"win32": "pc-windows-msvc",
	}[c.Metadata["AOTI_PLATFORM"]]
	if machine == "" || system == "" {
		return ""
	}
	return machine + "-" + system
}

// fillPlatforms takes from an archive for which platforms its models are compiled.
// Where one of them has a definition too, which runs anywhere, or doesn't say,
// nothing is required. A device, such as cuda, is part of no target triple.
func (p *packer) fillPlatforms(a *pt2.Archive, name string) {
	if len(p.opts.RequiredPlatforms) > 0 || p.keepsInfo() {
		return
	}
	var platforms []string
	for i := range a.Models {
		m := &a.Models[i]
		if m.Schema != "" || len(m.AOTInductor) == 0 {
			return
		}
		for j := range m.AOTInductor {
			triple := platformOf(&m.AOTInductor[j])
			if triple == "" {
				return
			}
			platforms = append(platforms, triple)
		}
	}
	slices.Sort(platforms)
	p.opts.RequiredPlatforms = slices.Compact(platforms)
	if len(p.opts.RequiredPlatforms) > 0 {
		p.fill("required_platforms", strings.Join(p.opts.RequiredPlatforms, ", "), "AOTInductor's metadata in "+name)
	}
}
