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
	// files are what its other secrets hold, by secret and key.
	files map[string]map[string][]byte
	// outside is what the release's image is given of the world around it.
	outside []*runtimev1.Mount
}

func startKubelet(t testing.TB, n *node) *kubelet {
	t.Helper()
	conn, err := dial(n.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	k := &kubelet{runtime: runtimev1.NewRuntimeServiceClient(conn), images: runtimev1.NewImageServiceClient(conn), logs: t.TempDir()}
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
	s, err := k.sandbox(ctx, name, pod)
	if err != nil {
		return nil, err
	}
	defer k.remove(t, s.id)
	var ended []ran
	for _, c := range append(append([]corev1.Container(nil), pod.InitContainers...), pod.Containers...) {
		r, err := k.container(ctx, s, k.containerConfig(pod, c, s.volumes))
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

// serve starts a pod of one container that goes on until the test ends.
func (k *kubelet) serve(t testing.TB, name string, pod corev1.PodSpec) {
	t.Helper()
	s, err := k.sandbox(t.Context(), name, pod)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.remove(t, s.id) })
	config := k.containerConfig(pod, pod.Containers[0], s.volumes)
	if _, err := k.start(t.Context(), s, config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if stdout, stderr, err := readLog(s.log(config)); t.Failed() {
			t.Logf("%s said: %s%s %v", name, stdout, stderr, err)
		}
	})
}

// sandbox is a pod that has no containers yet.
type sandbox struct {
	id      string
	config  *runtimev1.PodSandboxConfig
	volumes map[string]*runtimev1.Mount
}

func (s *sandbox) log(c *runtimev1.ContainerConfig) string {
	return filepath.Join(s.config.LogDirectory, c.LogPath)
}

func (k *kubelet) sandbox(ctx context.Context, name string, pod corev1.PodSpec) (*sandbox, error) {
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
	started, err := k.runtime.RunPodSandbox(ctx, &runtimev1.RunPodSandboxRequest{Config: config})
	if err != nil {
		return nil, err
	}
	return &sandbox{started.PodSandboxId, config, volumes}, nil
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

// start starts a container, and returns what the runtime calls it.
func (k *kubelet) start(ctx context.Context, s *sandbox, config *runtimev1.ContainerConfig) (string, error) {
	if err := os.MkdirAll(filepath.Dir(s.log(config)), 0o755); err != nil {
		return "", err
	}
	created, err := k.runtime.CreateContainer(ctx, &runtimev1.CreateContainerRequest{PodSandboxId: s.id, Config: config, SandboxConfig: s.config})
	if err != nil {
		return "", err
	}
	_, err = k.runtime.StartContainer(ctx, &runtimev1.StartContainerRequest{ContainerId: created.ContainerId})
	return created.ContainerId, err
}

// container runs one container to its end.
func (k *kubelet) container(ctx context.Context, s *sandbox, config *runtimev1.ContainerConfig) (ran, error) {
	r := ran{name: config.Metadata.Name}
	id, err := k.start(ctx, s, config)
	if err != nil {
		return r, err
	}
	for {
		status, err := k.runtime.ContainerStatus(ctx, &runtimev1.ContainerStatusRequest{ContainerId: id})
		if err != nil {
			return r, err
		}
		if status.Status.State == runtimev1.ContainerState_CONTAINER_EXITED {
			r.code = status.Status.ExitCode
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	r.stdout, r.stderr, err = readLog(s.log(config))
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
