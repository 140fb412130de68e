package manifest

import (
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Check returns what the API server would find wrong with an object that Read has
// taken: it looks at what the types alone don't say.
func (o *Object) Check() []string {
	var findings []string
	found := func(format string, args ...any) { findings = append(findings, fmt.Sprintf(format, args...)) }
	if o.Name == "" {
		found("the object has no name")
	}
	volumes := map[string]corev1.Volume{}
	for _, v := range o.Pod.Volumes {
		if _, twice := volumes[v.Name]; twice {
			found("two volumes are called %q", v.Name)
		}
		volumes[v.Name] = v
		o.checkVolume(v, found)
	}
	if len(o.Pod.Containers) == 0 {
		found("the pod has no containers")
	}
	for _, c := range o.Containers() {
		checkContainer(c, volumes, found)
	}
	switch {
	case o.Kind == "Job" && o.Pod.RestartPolicy != corev1.RestartPolicyNever &&
		o.Pod.RestartPolicy != corev1.RestartPolicyOnFailure:
		found("a Job's restartPolicy is %q, want Never or OnFailure", o.Pod.RestartPolicy)
	case o.Kind == "Deployment" && o.Pod.RestartPolicy != "" && o.Pod.RestartPolicy != corev1.RestartPolicyAlways:
		found("a Deployment's restartPolicy is %q, want Always", o.Pod.RestartPolicy)
	}
	if d := o.Deployment; d != nil {
		for key, value := range d.Spec.Selector.MatchLabels {
			if d.Spec.Template.Labels[key] != value {
				found("the selector wants %s=%s, which the pods don't have", key, value)
			}
		}
	}
	return findings
}

func (o *Object) checkVolume(v corev1.Volume, found func(string, ...any)) {
	switch {
	case v.Image != nil:
		if v.Image.Reference == "" {
			found("volume %s: the image has no reference", v.Name)
		}
		switch v.Image.PullPolicy {
		case "", corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever:
		default:
			found("volume %s: got the pullPolicy %q", v.Name, v.Image.PullPolicy)
		}
	case v.Secret != nil, v.EmptyDir != nil:
	default:
		found("volume %s: got no image, secret or emptyDir, want one", v.Name)
	}
}

func checkContainer(c corev1.Container, volumes map[string]corev1.Volume, found func(string, ...any)) {
	if c.Name == "" || c.Image == "" {
		found("container %q has no name or no image", c.Name)
	}
	paths := map[string]bool{}
	for _, m := range c.VolumeMounts {
		v, ok := volumes[m.Name]
		if !ok {
			found("container %s mounts %q, which is no volume", c.Name, m.Name)
		}
		if paths[m.MountPath] || !path.IsAbs(m.MountPath) {
			found("container %s: got the mountPath %q, want an absolute one of its own", c.Name, m.MountPath)
		}
		paths[m.MountPath] = true
		if path.IsAbs(m.SubPath) || strings.HasPrefix(path.Clean(m.SubPath), "..") {
			found("container %s: got the subPath %q, want one inside the volume", c.Name, m.SubPath)
		}
		if v.Image != nil && !m.ReadOnly {
			found("container %s: image volumes are read-only, and %s should say so", c.Name, m.Name)
		}
	}
}
