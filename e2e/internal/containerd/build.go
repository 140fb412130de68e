package containerd

import "github.com/carton-oci/carton-oci/e2e/internal/program"

// Version is the containerd that is built and run.
const Version = "v2.4.2"

const (
	module   = "github.com/containerd/containerd/v2"
	commands = module + "/cmd/"
)

// The builds. What a test does not use is left out, and so is what needs a C
// compiler.
var (
	// Light is containerd without the kubelet's interface, and ctr.
	Light = program.Set{
		Name: "containerd-light", Module: module, Version: Version,
		Tags:     []string{"no_btrfs", "no_cri", "no_devmapper", "no_tracing", "no_zfs"},
		Packages: []string{commands + "containerd", commands + "ctr"},
	}
	// CRI is containerd as it runs below a kubelet, and the shim that starts runc.
	CRI = program.Set{
		Name: "containerd-cri", Module: module, Version: Version,
		Tags:     []string{"no_btrfs", "no_devmapper", "no_tracing", "no_zfs"},
		Packages: []string{commands + "containerd", commands + "containerd-shim-runc-v2", commands + "ctr"},
	}
)
