// Package cri runs pods on a real containerd, through the interface that the
// kubelet has to it (CRI): the images, the volumes and the containers are real;
// only the kubelet is played, by as much of it as the examples need.
//
// It takes root, a system that lets containers run, and runc. `make e2e-cri` runs
// it; `make test` does not.
package cri
