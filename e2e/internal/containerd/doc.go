// Package containerd runs a real containerd for a test, with a root, a state
// folder and a socket of its own: what most Kubernetes nodes pull and mount
// images with. Nothing else on the machine is touched.
//
// It needs root and a system that lets it mount. Where either is missing a test
// is skipped, loudly.
package containerd
