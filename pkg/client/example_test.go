package client_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/client"
	"github.com/carton-oci/carton-oci/pkg/progress"
	"oras.land/oras-go/v2/content/memory"
)

// unpacked writes a small carton, in its unpacked form, and returns its folder.
func unpacked() string {
	dir, err := os.MkdirTemp("", "example")
	check(err)
	check(os.Mkdir(filepath.Join(dir, "model"), 0o755))
	check(os.WriteFile(filepath.Join(dir, "model", "weights.bin"), []byte("0123456789"), 0o644))
	check(os.WriteFile(filepath.Join(dir, "carton.toml"), []byte(`spec_version = 1
model_name = "example"
[runner]
runner_name = "torchscript"
required_framework_version = "=2.1.0"
runner_compat_version = 1
`), 0o644))
	manifest, err := carton.HashFS(context.Background(), os.DirFS(dir))
	check(err)
	check(os.WriteFile(filepath.Join(dir, "MANIFEST"), manifest.Bytes(), 0o644))
	return dir
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func ExamplePush() {
	ctx, dir := context.Background(), unpacked()
	defer os.RemoveAll(dir)

	// Without a Target it would go to a registry: Push(ctx, dir, "ghcr.io/org/m:1", …).
	opts := client.PushOptions{Options: client.Options{Target: memory.New()}}
	first, err := client.Push(ctx, dir, "1,latest", opts)
	check(err)
	second, err := client.Push(ctx, dir, "2", opts)
	check(err)

	for _, l := range first.Layers {
		fmt.Println(l.Paths[0], l.Size, l.Status)
	}
	fmt.Println("the layer of MANIFEST is the model hash:", first.Layers[0].Digest.Encoded() == first.ModelHash)
	fmt.Println("the second push sent", second.BytesUploaded, "bytes")
	fmt.Println("the digest is the same:", first.Digest == second.Digest)
	// Output:
	// MANIFEST 160 uploaded
	// carton.toml 141 uploaded
	// model/weights.bin 10 uploaded
	// the layer of MANIFEST is the model hash: true
	// the second push sent 0 bytes
	// the digest is the same: true
}

func ExamplePull() {
	ctx, dir := context.Background(), unpacked()
	defer os.RemoveAll(dir)
	place := client.Options{Target: memory.New()}
	pushed, err := client.Push(ctx, dir, "1", client.PushOptions{Options: place})
	check(err)

	place.Progress = func(e progress.Event) {
		if e.State == progress.Finished && e.Name == "model/weights.bin" {
			fmt.Println("finished", e.Name)
		}
	}
	result, err := client.Pull(ctx, "1", client.PullOptions{
		Options:   place,
		Output:    filepath.Join(dir, "pulled.carton"),
		ModelHash: pushed.ModelHash, // this model or none
	})
	check(err)

	src, err := carton.Open(result.Path)
	check(err)
	defer src.Close()
	info, err := carton.ReadInfo(ctx, src)
	check(err)
	fmt.Println(filepath.Base(result.Path), "is", info.ModelName)
	// Output:
	// finished model/weights.bin
	// pulled.carton is example
}

func ExampleOpenSource() {
	ctx, dir := context.Background(), unpacked()
	defer os.RemoveAll(dir)

	// A folder here; a file, an https URL or a reference into a registry is opened
	// by the same call, and nothing of it is read that is not asked for.
	src, err := client.OpenSource(ctx, dir, client.Options{})
	check(err)
	defer src.Close()
	members, err := src.Members(ctx)
	check(err)
	for _, m := range members {
		fmt.Println(m.Path, m.Size)
	}
	// Output:
	// carton.toml 141
	// model/weights.bin 10
}
