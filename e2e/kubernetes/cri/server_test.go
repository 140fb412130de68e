package cri

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/e2e/internal/lan"
	corev1 "k8s.io/api/core/v1"
)

// The promise: the servers of the examples serve the model, as they are: their
// container, their volume, their port.

// readyTimeout is how long a server may take until its readiness probe is answered.
const readyTimeout = time.Minute

func TestServersOfTheExamplesAnswer(t *testing.T) {
	for _, runtime := range []string{"CRI-O", "containerd"} {
		t.Run(runtime, func(t *testing.T) {
			// The servers have ports of the machine's, which must be nobody else's.
			network := lan.New(t)
			n := (&node{runtime: runtime, machine: network.Machine(t)}).start(t, network.Machine(t))
			n.iris(t)
			k := startKubelet(t, n)
			want := strings.TrimSpace(n.scores(t, example(t, "pod.yaml").Pod.Containers[0]))
			kserve := example(t, "kserve.yaml").Pod
			for name, pod := range map[string]corev1.PodSpec{
				"deployment.yaml": example(t, "deployment.yaml").Pod, "kserve.yaml": kserve, "storageUri": storageURI(kserve),
			} {
				t.Run(name, func(t *testing.T) {
					k.serve(t, "server", pod)
					c := &caller{t, network.Machine(t), "http://" + n.machine.Address}
					if got := c.ready(pod.Containers[0]); !strings.Contains(got, `"ready": true`) {
						t.Errorf("got %s, want a server that is ready", got)
					}
					got := c.predict(pod.Containers[0], "[5.1, 3.5, 1.4, 0.2]")
					if got != want {
						t.Errorf("got %s, want %s", got, want)
					}
					t.Logf("%s answered %s", name, got)
				})
			}
		})
	}
}

// storageURI gives a predictor the volume that KServe 0.20 makes of an
// `oci+native://` address, in place of the one that is written in the example.
func storageURI(pod corev1.PodSpec) corev1.PodSpec {
	changed := *pod.DeepCopy()
	changed.Volumes[0].Name = "mnt-models"
	changed.Containers[0].VolumeMounts = []corev1.VolumeMount{
		{Name: "mnt-models", MountPath: "/mnt/models", SubPath: "models", ReadOnly: true},
	}
	return changed
}

// caller asks a server from a machine of its own.
type caller struct {
	t    *testing.T
	from *lan.Machine
	url  string
}

func (c *caller) do(method, url, body string) (string, error) {
	req, err := http.NewRequestWithContext(c.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	client := &http.Client{Transport: &http.Transport{DialContext: c.from.DialContext, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, answer)
	}
	return string(answer), err
}

// ready asks what the kubelet asks for a readiness probe until it is answered, and
// returns the answer.
func (c *caller) ready(server corev1.Container) string {
	c.t.Helper()
	url := fmt.Sprintf("%s:%d/v1/models/iris", c.url, server.Ports[0].ContainerPort)
	if p := server.ReadinessProbe; p != nil {
		url = fmt.Sprintf("%s:%d%s", c.url, p.HTTPGet.Port.IntValue(), p.HTTPGet.Path)
	}
	for deadline := time.Now().Add(readyTimeout); ; time.Sleep(100 * time.Millisecond) {
		answer, err := c.do(http.MethodGet, url, "")
		if err == nil {
			return answer
		}
		if time.Now().After(deadline) {
			c.t.Fatal(err)
		}
	}
}

// predict asks for the scores of one instance.
func (c *caller) predict(server corev1.Container, instance string) string {
	c.t.Helper()
	url := fmt.Sprintf("%s:%d/v1/models/iris:predict", c.url, server.Ports[0].ContainerPort)
	answer, err := c.do(http.MethodPost, url, `{"instances": [`+instance+`]}`)
	if err != nil {
		c.t.Fatal(err)
	}
	var got struct{ Predictions []json.RawMessage }
	if err := json.NewDecoder(bytes.NewReader([]byte(answer))).Decode(&got); err != nil || len(got.Predictions) != 1 {
		c.t.Fatalf("got %s, %v", answer, err)
	}
	return string(got.Predictions[0])
}
