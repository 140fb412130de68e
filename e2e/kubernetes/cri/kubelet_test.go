package cri

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/testenv"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// podTimeout is how long a container may run; they take seconds.
const podTimeout = 5 * time.Minute

// kubelet plays the part of a kubelet that starts one pod.
type kubelet struct {
	runtime runtimev1.RuntimeServiceClient
	images  runtimev1.ImageServiceClient
	logs    string
	// secrets are what the namespace's pull secrets hold, by registry.
	secrets map[string]*runtimev1.AuthConfig
}

func startKubelet(t testing.TB, n *node) *kubelet {
	t.Helper()
	conn, err := dial(n.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	k := &kubelet{runtimev1.NewRuntimeServiceClient(conn), runtimev1.NewImageServiceClient(conn), t.TempDir(), nil}
	k.probe(t)
	return k
}

func dial(socket string) (*grpc.ClientConn, error) {
	return grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// probe runs a pod that has no volume. Where that can't be, it is the machine that
// lets no container run, and the test is skipped, loudly.
func (k *kubelet) probe(t testing.TB) {
	t.Helper()
	got, err := k.run(t, "probe", corev1.PodSpec{Containers: []corev1.Container{{Name: "probe", Image: cartonImage, Args: []string{"version"}}}})
	if err != nil || got[0].code != 0 {
		testenv.NotChecked(t, "no container runs here: %+v, %v", got, err)
	}
}

// ran is how a container ended.
type ran struct {
	name   string
	code   int32
	stdout string
	stderr string
}

// run runs a pod: its init containers and its containers, one after the other,
// until one ends badly. An error is one that keeps a pod in ContainerCreating.
func (k *kubelet) run(t testing.TB, name string, pod corev1.PodSpec) ([]ran, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), podTimeout)
	defer cancel()
	volumes, err := k.volumes(ctx, pod)
	if err != nil {
		return nil, err
	}
	config := &runtimev1.PodSandboxConfig{
		Metadata:     &runtimev1.PodSandboxMetadata{Name: name, Uid: name, Namespace: "default"},
		LogDirectory: filepath.Join(k.logs, name),
		Linux:        &runtimev1.LinuxPodSandboxConfig{SecurityContext: &runtimev1.LinuxSandboxSecurityContext{NamespaceOptions: hostNamespaces()}},
	}
	if err := os.MkdirAll(config.LogDirectory, 0o755); err != nil {
		return nil, err
	}
	sandbox, err := k.runtime.RunPodSandbox(ctx, &runtimev1.RunPodSandboxRequest{Config: config})
	if err != nil {
		return nil, err
	}
	defer k.remove(t, sandbox.PodSandboxId)
	var ended []ran
	for _, c := range append(append([]corev1.Container(nil), pod.InitContainers...), pod.Containers...) {
		r, err := k.container(ctx, sandbox.PodSandboxId, config, containerConfig(pod, c, volumes))
		if err != nil {
			return ended, fmt.Errorf("container %s: %w", c.Name, err)
		}
		ended = append(ended, r)
		if r.code != 0 {
			break
		}
	}
	return ended, nil
}

// remove removes a pod with all of its containers.
func (k *kubelet) remove(t testing.TB, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), podTimeout)
	defer cancel()
	if _, err := k.runtime.StopPodSandbox(ctx, &runtimev1.StopPodSandboxRequest{PodSandboxId: id}); err != nil {
		t.Errorf("stop the pod: %v", err)
	}
	if _, err := k.runtime.RemovePodSandbox(ctx, &runtimev1.RemovePodSandboxRequest{PodSandboxId: id}); err != nil {
		t.Errorf("remove the pod: %v", err)
	}
}

// volumes pulls the pod's images, those of its volumes among them, and returns
// what the runtime calls the latter, by the name of the volume.
func (k *kubelet) volumes(ctx context.Context, pod corev1.PodSpec) (map[string]*runtimev1.ImageSpec, error) {
	for _, c := range append(append([]corev1.Container(nil), pod.InitContainers...), pod.Containers...) {
		if _, err := k.pull(ctx, pod, c.Image); err != nil {
			return nil, err
		}
	}
	volumes := map[string]*runtimev1.ImageSpec{}
	for _, v := range pod.Volumes {
		if v.Image == nil {
			return nil, fmt.Errorf("volume %s is no image: only those are played here", v.Name)
		}
		id, err := k.pull(ctx, pod, v.Image.Reference)
		if err != nil {
			return nil, err
		}
		volumes[v.Name] = &runtimev1.ImageSpec{Image: id, UserSpecifiedImage: v.Image.Reference}
	}
	return volumes, nil
}

// pull pulls an image, with what the pod's secrets say of its registry, if it
// names any.
func (k *kubelet) pull(ctx context.Context, pod corev1.PodSpec, ref string) (string, error) {
	request := &runtimev1.PullImageRequest{Image: &runtimev1.ImageSpec{Image: ref}}
	if len(pod.ImagePullSecrets) > 0 {
		registry, _, _ := strings.Cut(ref, "/")
		request.Auth = k.secrets[registry]
	}
	pulled, err := k.images.PullImage(ctx, request)
	if err != nil {
		return "", err
	}
	return pulled.ImageRef, nil
}

// container runs one container to its end.
func (k *kubelet) container(ctx context.Context, sandbox string, pod *runtimev1.PodSandboxConfig, config *runtimev1.ContainerConfig) (ran, error) {
	r := ran{name: config.Metadata.Name}
	if err := os.MkdirAll(filepath.Dir(filepath.Join(pod.LogDirectory, config.LogPath)), 0o755); err != nil {
		return r, err
	}
	created, err := k.runtime.CreateContainer(ctx, &runtimev1.CreateContainerRequest{PodSandboxId: sandbox, Config: config, SandboxConfig: pod})
	if err != nil {
		return r, err
	}
	if _, err := k.runtime.StartContainer(ctx, &runtimev1.StartContainerRequest{ContainerId: created.ContainerId}); err != nil {
		return r, err
	}
	for {
		status, err := k.runtime.ContainerStatus(ctx, &runtimev1.ContainerStatusRequest{ContainerId: created.ContainerId})
		if err != nil {
			return r, err
		}
		if status.Status.State == runtimev1.ContainerState_CONTAINER_EXITED {
			r.code = status.Status.ExitCode
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	r.stdout, r.stderr, err = readLog(filepath.Join(pod.LogDirectory, config.LogPath))
	return r, err
}

// readLog reads a log as CRI has it: time, stream, F for a full line or P for a
// part of one, text.
func readLog(name string) (stdout, stderr string, err error) {
	raw, err := os.ReadFile(name)
	for line := range strings.Lines(string(raw)) {
		fields := strings.SplitN(line, " ", 4)
		if len(fields) < 4 {
			return "", "", fmt.Errorf("%s: got the line %q", name, line)
		}
		text := fields[3]
		if fields[2] == "P" {
			text = strings.TrimSuffix(text, "\n")
		}
		if fields[1] == "stdout" {
			stdout += text
		} else {
			stderr += text
		}
	}
	return stdout, stderr, err
}
