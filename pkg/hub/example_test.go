package hub_test

import (
	"context"
	"fmt"

	"github.com/carton-oci/carton-oci/pkg/hub"
	"github.com/carton-oci/carton-oci/pkg/pack"
	"github.com/carton-oci/carton-oci/pkg/registry"
)

// A repository of the hub as a carton, which client.PushSource sends and
// carton.Assemble writes.
func ExampleClient_Open() {
	ctx := context.Background()
	opts, err := hub.Environment() // HF_TOKEN, HF_ENDPOINT and the like
	if err != nil {
		panic(err)
	}
	web, err := registry.NewClient(registry.Options{})
	if err != nil {
		panic(err)
	}
	opts.Web = web.WebClient()
	client, err := hub.New(opts)
	if err != nil {
		panic(err)
	}
	pack := func(repository, revision string) (*pack.Carton, error) {
		snapshot, err := client.Open(ctx, repository, revision)
		if err != nil {
			return nil, err
		}
		return pack.OpenListing(ctx, snapshot.Listing(), pack.Options{})
	}
	_, err = pack("not/a/name", "main")
	fmt.Println(err)
	// Output: got the repository not/a/name, want ORG/NAME
}
