package cri

import (
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// hostNamespaces are for pods that need no plugin for networks.
func hostNamespaces() *runtimev1.NamespaceOption {
	return &runtimev1.NamespaceOption{
		Network: runtimev1.NamespaceMode_NODE, Pid: runtimev1.NamespaceMode_NODE, Ipc: runtimev1.NamespaceMode_NODE,
	}
}

// containerConfig is what the kubelet makes of a container of a pod.
func (k *kubelet) containerConfig(pod corev1.PodSpec, c corev1.Container, volumes map[string]*runtimev1.Mount) *runtimev1.ContainerConfig {
	config := &runtimev1.ContainerConfig{
		Metadata: &runtimev1.ContainerMetadata{Name: c.Name},
		Image:    &runtimev1.ImageSpec{Image: c.Image, UserSpecifiedImage: c.Image},
		Command:  c.Command, Args: c.Args, WorkingDir: c.WorkingDir,
		LogPath: filepath.Join(c.Name, "0.log"),
		Linux:   &runtimev1.LinuxContainerConfig{SecurityContext: securityContext(pod, c)},
	}
	for _, e := range c.Env {
		config.Envs = append(config.Envs, &runtimev1.KeyValue{Key: e.Name, Value: []byte(e.Value)})
	}
	for _, m := range c.VolumeMounts {
		config.Mounts = append(config.Mounts, &runtimev1.Mount{
			ContainerPath: m.MountPath, Readonly: m.ReadOnly, HostPath: volumes[m.Name].HostPath,
			Image: volumes[m.Name].Image, ImageSubPath: m.SubPath,
		})
	}
	switch c.Image {
	case cartonImage:
		config.Mounts = append(config.Mounts, k.outside...)
	case pythonImage:
		config.Mounts = append(config.Mounts, &runtimev1.Mount{ContainerPath: "/usr", HostPath: "/usr", Readonly: true})
	}
	return config
}

func securityContext(pod corev1.PodSpec, c corev1.Container) *runtimev1.LinuxContainerSecurityContext {
	s := &runtimev1.LinuxContainerSecurityContext{NamespaceOptions: hostNamespaces()}
	if p := pod.SecurityContext; p != nil && p.RunAsUser != nil {
		s.RunAsUser = &runtimev1.Int64Value{Value: *p.RunAsUser}
	}
	if own := c.SecurityContext; own != nil {
		if own.RunAsUser != nil {
			s.RunAsUser = &runtimev1.Int64Value{Value: *own.RunAsUser}
		}
		s.ReadonlyRootfs = own.ReadOnlyRootFilesystem != nil && *own.ReadOnlyRootFilesystem
		s.NoNewPrivs = own.AllowPrivilegeEscalation != nil && !*own.AllowPrivilegeEscalation
		if own.Capabilities != nil {
			s.Capabilities = &runtimev1.Capability{}
			for _, name := range own.Capabilities.Drop {
				s.Capabilities.DropCapabilities = append(s.Capabilities.DropCapabilities, string(name))
			}
		}
	}
	if p := pod.SecurityContext; p != nil && p.SeccompProfile != nil && p.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault {
		s.Seccomp = &runtimev1.SecurityProfile{ProfileType: runtimev1.SecurityProfile_RuntimeDefault}
	}
	return s
}
