package cri

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The promise: a volume is pulled with the pull secrets of its pod, as
// deployment.yaml has them, and without them not at all.
func TestAPodPullsItsVolumeWithASecret(t *testing.T) { onEach(t, aPodPullsItsVolumeWithASecret) }

func aPodPullsItsVolumeWithASecret(t *testing.T, n *node) {
	n.iris(t)
	n.logIn(t)
	n.must(t, "push", "./iris", n.private.Host+"/models/iris:1", "--image")
	k := startKubelet(t, n)

	deployment := example(t, "deployment.yaml")
	pod, program := deployment.Pod, example(t, "pod.yaml").Pod.Containers[0]
	volume := pod.Volumes[0].Image
	volume.Reference = strings.Replace(volume.Reference, exampleRegistry, n.private.Host, 1)
	pod.Containers[0].Args = program.Args // which ends; the server does not
	if volume.Reference != n.private.Host+"/models/iris:1-image" || len(pod.ImagePullSecrets) != 1 {
		t.Fatalf("deployment.yaml mounts %s with %d pull secrets, want its image form with one", volume.Reference, len(pod.ImagePullSecrets))
	}

	for name, tt := range map[string]struct {
		auth *runtimev1.AuthConfig
		want map[string]string // by runtime
	}{
		"no secret": {nil, map[string]string{
			"containerd": "may require authorization", "CRI-O": "authentication required",
		}},
		"a wrong password": {&runtimev1.AuthConfig{Username: user, Password: "byron"}, map[string]string{
			"containerd": "401 Unauthorized", "CRI-O": "authentication required",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			k.secrets = map[string]*runtimev1.AuthConfig{n.private.Host: tt.auth}
			got, err := k.run(t, "refused", pod)
			if err == nil || !strings.Contains(err.Error(), tt.want[n.runtime]) {
				t.Errorf("got %+v, %v, want an error that says %q", got, err, tt.want[n.runtime])
			}
		})
	}
	t.Run("the secret", func(t *testing.T) {
		k.secrets = map[string]*runtimev1.AuthConfig{n.private.Host: {Username: user, Password: password}}
		got, err := k.run(t, deployment.Name, pod)
		if err != nil || len(got) != 1 || got[0].code != 0 {
			t.Fatalf("got %+v, %v, want the container to end well", got, err)
		}
		if want := n.scores(t, program); got[0].stdout != want {
			t.Errorf("got %q, want %q", got[0].stdout, want)
		}
	})
}

// logIn gives the command on the machine the password of the private registry.
func (n *node) logIn(t *testing.T) {
	t.Helper()
	config := filepath.Join(n.home, ".docker", "config.json")
	if err := os.MkdirAll(filepath.Dir(config), 0o700); err != nil {
		t.Fatal(err)
	}
	auth := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	if err := os.WriteFile(config, fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, n.private.Host, auth), 0o600); err != nil {
		t.Fatal(err)
	}
}
