package cartonoci_test

import (
	"context"
	"fmt"
	"os"

	"github.com/carton-oci/carton-oci"
	"oras.land/oras-go/v2/content/memory"
)

// The image form, which containerd mounts, goes beside the artifact or is made
// of it later. It is the same.
func ExampleImage() {
	ctx, dir := context.Background(), unpacked()
	defer os.RemoveAll(dir)
	place := cartonoci.Options{Target: memory.New()}

	pushed, err := cartonoci.Push(ctx, dir, "1", cartonoci.PushOptions{Options: place, Image: cartonoci.ImagePush})
	check(err)
	_, err = cartonoci.Push(ctx, dir, "2", cartonoci.PushOptions{Options: place})
	check(err)
	made, err := cartonoci.Image(ctx, "2", cartonoci.ImageOptions{Options: place})
	check(err)

	fmt.Println("one image:", made.Digest == pushed.Image.Digest)
	fmt.Println("of one model:", made.ModelHash == pushed.ModelHash)
	fmt.Println("layers:", made.Layers)
	// Output:
	// one image: true
	// of one model: true
	// layers: 2
}
