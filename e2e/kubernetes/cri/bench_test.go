package cri

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// coldBytes is the size of the models that pods wait for.
const coldBytes = 2 << 30

// BenchmarkColdStart says what a pod waits for until its model's files are there: an
// image volume of each runtime, and an init container that unpacks; cold, with nothing
// on the node, and warm, for the next pod. docs/kubernetes.md has figures.
func BenchmarkColdStart(b *testing.B) {
	for _, members := range []int{4, 1} {
		for _, runtime := range []string{"containerd", "CRI-O"} {
			b.Run(fmt.Sprintf("%d members/%s", members, runtime), func(b *testing.B) { imageVolume(b, runtime, members) })
		}
		b.Run(fmt.Sprintf("%d members/init container", members), func(b *testing.B) { initContainer(b, members) })
	}
}

func imageVolume(b *testing.B, runtime string, members int) {
	n := startNode(b, runtime)
	ref := n.weights(b, members)
	k := startKubelet(b, n)
	pod := reader(ref+"-image", "")
	pod.Containers[0].Image, pod.Containers[0].Args = cartonImage, []string{"version"} // which reads nothing of the model
	var cold, warm time.Duration
	for b.Loop() {
		b.StopTimer()
		_, err := k.images.RemoveImage(b.Context(), &runtimev1.RemoveImageRequest{Image: &runtimev1.ImageSpec{Image: ref + "-image"}})
		if err != nil {
			b.Fatal(err)
		}
		syscall.Sync()
		b.StartTimer()
		cold += k.ready(b, pod)
		warm += k.ready(b, pod)
	}
	report(b, cold, warm)
}

// ready runs a pod that ends at once, and returns how long that took.
func (k *kubelet) ready(b *testing.B, pod corev1.PodSpec) time.Duration {
	b.Helper()
	start := time.Now()
	if got, err := k.run(b, "bench", pod); err != nil || got[0].code != 0 {
		b.Fatalf("got %+v, %v", got, err)
	}
	return time.Since(start)
}

// initContainer is what the command does in unpack.yaml. Each pod has a folder of its
// own, so that no pod is warm: the second pull is what a restart of the init container
// costs.
func initContainer(b *testing.B, members int) {
	n := startNode(b, "containerd")
	ref := n.weights(b, members)
	dir := filepath.Join(n.home, "models")
	var cold, warm time.Duration
	for b.Loop() {
		b.StopTimer()
		if err := os.RemoveAll(dir); err != nil {
			b.Fatal(err)
		}
		syscall.Sync()
		b.StartTimer()
		for _, spent := range []*time.Duration{&cold, &warm} {
			start := time.Now()
			n.must(b, "pull", ref, "--unpack", dir)
			*spent += time.Since(start)
		}
	}
	report(b, cold, warm)
}

func report(b *testing.B, cold, warm time.Duration) {
	b.ReportMetric(cold.Seconds()/float64(b.N), "s-cold")
	b.ReportMetric(warm.Seconds()/float64(b.N), "s-warm")
}

// weights pushes both forms of a model of so many weights.
func (n *node) weights(b *testing.B, members int) string {
	b.Helper()
	seeds := make([]byte, members)
	for i := range seeds {
		seeds[i] = byte(i)
	}
	dir := filepath.Join(n.home, "large")
	writeWeights(b, dir, coldBytes/int64(members), seeds...)
	ref := n.registry.Host + "/models/large:1"
	n.must(b, "push", dir, ref, "--image")
	if err := os.RemoveAll(dir); err != nil {
		b.Fatal(err)
	}
	return ref
}
