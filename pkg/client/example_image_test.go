package client_test

import (
	"context"
	"fmt"
	"os"

	"github.com/carton-oci/carton-oci/pkg/client"
	"oras.land/oras-go/v2/content/memory"
)

// The image form, which containerd mounts, goes beside the artifact or is made
// of it later. It is the same.
func ExampleImage() {
	ctx, dir := context.Background(), unpacked()
	defer os.RemoveAll(dir)
	place := client.Options{Target: memory.New()}

	pushed, err := client.Push(ctx, dir, "1", client.PushOptions{Options: place, Image: client.ImagePush})
	check(err)
	_, err = client.Push(ctx, dir, "2", client.PushOptions{Options: place})
	check(err)
	made, err := client.Image(ctx, "2", client.ImageOptions{Options: place})
	check(err)

	fmt.Println("one image:", made.Digest == pushed.Image.Digest)
	fmt.Println("of one model:", made.ModelHash == pushed.ModelHash)
	fmt.Println("layers:", made.Layers)
	// Output:
	// one image: true
	// of one model: true
	// layers: 2
}
