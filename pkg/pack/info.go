package pack

import (
	"maps"
	"strconv"
)

// info writes carton.toml: what was given, what the files told, and the tests.
func (p *packer) info() ([]byte, error) {
	p.fillRunner()
	p.take(&p.opts.Repository, "repository", p.opts.Checkout, "the checkout")
	info := p.opts.Info
	if missing := Missing(info.Runner); missing != nil {
		return nil, missing
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
	p.take(&r.RequiredFrameworkVersion, "runner.required_framework_version", FrameworkOf(r.Name),
		"noop has no framework")
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
