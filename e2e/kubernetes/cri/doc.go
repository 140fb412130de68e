// Package cri runs pods on a real containerd and a real CRI-O, through the interface
// that the kubelet has to them (CRI): the images, the volumes and the containers are
// real; only the kubelet is played, by as much of it as the examples need.
//
// It takes root, a system that lets containers run, runc, conmon, a C compiler and ip.
// `make e2e-cri` runs it; `make test` does not.
package cri
