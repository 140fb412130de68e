package cri

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// volumes pulls the pod's images and makes its volumes, and returns what is mounted of
// each, by its name.
func (k *kubelet) volumes(ctx context.Context, pod corev1.PodSpec) (map[string]*runtimev1.Mount, error) {
	for _, c := range append(append([]corev1.Container(nil), pod.InitContainers...), pod.Containers...) {
		if _, err := k.pull(ctx, pod, c.Image); err != nil {
			return nil, err
		}
	}
	volumes := map[string]*runtimev1.Mount{}
	for _, v := range pod.Volumes {
		var err error
		mount := &runtimev1.Mount{}
		switch {
		case v.Image != nil:
			var id string
			id, err = k.pull(ctx, pod, v.Image.Reference)
			mount.Image = &runtimev1.ImageSpec{Image: id, UserSpecifiedImage: v.Image.Reference}
		case v.EmptyDir != nil:
			mount.HostPath, err = k.folder(nil)
		case v.Secret != nil:
			files := map[string][]byte{}
			for _, item := range v.Secret.Items {
				files[item.Path] = k.files[v.Secret.SecretName][item.Key]
			}
			mount.HostPath, err = k.folder(files)
		default:
			err = fmt.Errorf("volume %s is of a kind that is not played here", v.Name)
		}
		if err != nil {
			return nil, err
		}
		volumes[v.Name] = mount
	}
	return volumes, nil
}

// folder makes a folder for a pod: every user may write to it, and read what is there.
func (k *kubelet) folder(files map[string][]byte) (string, error) {
	dir, err := os.MkdirTemp(k.logs, "volume")
	if err != nil {
		return "", err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return "", err
		}
	}
	return dir, os.Chmod(dir, 0o777)
}
