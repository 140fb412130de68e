package client_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/client"
	"github.com/carton-oci/carton-oci/pkg/layout"
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
	var entries []carton.Entry
	for _, name := range []string{"carton.toml", "model/weights.bin"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		check(err)
		entries = append(entries, carton.Entry{Path: name, Hash: fmt.Sprintf("%x", sha256.Sum256(b))})
	}
	manifest, err := carton.NewManifest(entries)
	check(err)
	check(os.WriteFile(filepath.Join(dir, "MANIFEST"), manifest.Bytes(), 0o644))
	return dir
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// inMemory makes a client whose repositories are in memory; any oras.Target will do,
// and so will any layout.Store.
func inMemory() *client.Client {
	target := memory.New()
	c, err := client.New(client.Options{
		Repository: func(context.Context, string, string) (layout.Store, error) { return layout.FromTarget(target), nil },
	})
	check(err)
	return c
}

func ExampleClient_Push() {
	ctx, dir := context.Background(), unpacked()
	defer os.RemoveAll(dir)

	c := inMemory() // New(client.Options{}) would send it to a registry
	first, err := c.Push(ctx, dir, "ghcr.io/org/m:1,latest", client.PushOptions{})
	check(err)
	second, err := c.Push(ctx, dir, "ghcr.io/org/m:2", client.PushOptions{})
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

func ExampleClient_Pull() {
	ctx, dir := context.Background(), unpacked()
	defer os.RemoveAll(dir)
	c := inMemory()
	pushed, err := c.Push(ctx, dir, "ghcr.io/org/m:1", client.PushOptions{})
	check(err)

	result, err := c.Pull(ctx, "ghcr.io/org/m:1", client.PullOptions{
		Output:    filepath.Join(dir, "pulled.carton"),
		ModelHash: pushed.ModelHash, // this model or none
		Progress: func(e progress.Event) {
			if e.State == progress.Finished && e.Name == "model/weights.bin" {
				fmt.Println("finished", e.Name)
			}
		},
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

func ExampleClient_Open() {
	ctx, dir := context.Background(), unpacked()
	defer os.RemoveAll(dir)

	// A folder here; a file, an https URL or a reference into a registry is opened
	// by the same call, and nothing of it is read that is not asked for.
	c, err := client.New(client.Options{})
	check(err)
	src, err := c.Open(ctx, dir, client.OpenOptions{})
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
