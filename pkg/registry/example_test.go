package registry_test

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/carton-oci/carton-oci/pkg/registry"
)

func ExampleParseReference() {
	for _, s := range []string{"ghcr.io/org/model:1", "docker.io/model", "org/model:1"} {
		ref, err := registry.ParseReference(s)
		fmt.Println(ref.Registry, ref.Repository, ref.Tag, err)
	}
	// Output:
	// ghcr.io org/model 1 <nil>
	// docker.io library/model  <nil>
	//    invalid reference "org/model:1": names no registry
}

// Reading what a tag points to, as the user who has logged in with Docker,
// Podman or carton-oci.
func ExampleRepository() {
	ctx := context.Background()
	opts := registry.Options{Credential: registry.DockerCredentials("").Credential}
	client, err := registry.NewClient(opts)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	repo, err := client.Repository("ghcr.io", "org/model")
	if err != nil {
		fmt.Println(err)
		return
	}
	desc, err := repo.Resolve(ctx, "1")
	if err != nil {
		fmt.Println(err)
		return
	}
	manifest, err := repo.FetchManifest(ctx, desc)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = os.Stdout.Write(manifest)
}

// The first kilobyte of a blob.
func ExampleRepository_OpenRange() {
	ctx := context.Background()
	client, err := registry.NewClient(registry.Options{PlainHTTP: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	repo, err := client.Repository("registry.internal:5000", "org/model")
	if err != nil {
		fmt.Println(err)
		return
	}
	desc, err := repo.Resolve(ctx, "1") // or any descriptor of an image manifest
	if err != nil {
		fmt.Println(err)
		return
	}
	blob, err := repo.OpenRange(ctx, desc, 0, 1024)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer blob.Close()
	_, _ = io.Copy(os.Stdout, blob)
}
