package pack

import (
	"maps"
	"slices"
	"strconv"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

// info writes carton.toml: what was given, what the files told, and the tests.
func (p *packer) info(tests []writtenTest) ([]byte, error) {
	p.fillRunner()
	info := p.opts.Info
	info.SelfTests, info.Examples = slices.Clip(info.SelfTests), slices.Clip(info.Examples)
	if missing := Missing(info.Runner); missing != nil {
		return nil, missing
	}
	for _, t := range tests {
		if t.example {
			info.Examples = append(info.Examples, carton.Example{Name: t.name, Description: t.description, Inputs: t.inputs, SampleOut: t.outputs})
		} else {
			info.SelfTests = append(info.SelfTests, carton.SelfTest{Name: t.name, Description: t.description, Inputs: t.inputs, ExpectedOut: t.outputs})
		}
	}
	if p.pmf != nil {
		info.Extra += treeTable(p.pmf)
		roles := p.roles()
		maps.Copy(roles, info.Categories)
		info.Categories = roles
	}
	text, err := info.Marshal()
	if err != nil {
		return nil, optionsf("%v", err)
	}
	return text, nil
}

// fillRunner fills in what is known of the runner.
func (p *packer) fillRunner() {
	r := &p.opts.Runner
	if v := FrameworkOf(r.Name); v != "" && r.RequiredFrameworkVersion == "" {
		r.RequiredFrameworkVersion = v
		p.fill("runner.required_framework_version", "*", "noop has no framework")
	}
	if r.CompatVersion != nil || r.Name == "" {
		return
	}
	compat, from := uint64(1), "assumed: the runner is not known here"
	if known := knownRunner(r.Name); known != nil {
		compat, from = known.Compat, "what the runner "+known.Name+" reads"
	}
	r.CompatVersion = &compat
	p.fill("runner.runner_compat_version", strconv.FormatUint(compat, 10), from)
}
