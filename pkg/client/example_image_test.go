package client_test

import (
	"context"
	"fmt"
	"os"

	"github.com/carton-oci/carton-oci/pkg/client"
	"github.com/carton-oci/carton-oci/pkg/convert"
)

// The image form, which containerd mounts, goes beside the artifact or is made
// of it later. It is the same.
func ExampleClient_Image() {
	ctx, dir := context.Background(), unpacked()
	defer os.RemoveAll(dir)
	c := inMemory()

	pushed, err := c.Push(ctx, dir, "ghcr.io/org/m:1", client.PushOptions{Mapping: convert.Options{Image: true}})
	check(err)
	_, err = c.Push(ctx, dir, "ghcr.io/org/m:2", client.PushOptions{})
	check(err)
	made, err := c.Image(ctx, "ghcr.io/org/m:2", client.ImageOptions{})
	check(err)

	fmt.Println("one image:", made.Digest == pushed.Image.Digest)
	fmt.Println("of one model:", made.ModelHash == pushed.ModelHash)
	fmt.Println("layers:", made.Layers)
	// Output:
	// one image: true
	// of one model: true
	// layers: 2
}
