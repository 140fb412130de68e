package convert_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/opencontainers/go-digest"
	"oras.land/oras-go/v2/content/memory"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// A carton goes into a store and comes back with the same model hash. carton.Open
// opens one of a file or folder; registry.Client.Repository is a store of a registry.
func Example() {
	ctx := context.Background()
	src := cartontest.New(map[string][]byte{
		"model/model.bin": bytes.Repeat([]byte("w"), 1000),
		"model/main.py":   []byte("print()"),
	}, nil)
	store := layout.FromTarget(memory.New())

	forms, err := convert.Build(ctx, src, convert.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := layout.Push(ctx, store, forms.Artifact, layout.PushOptions{Tags: []string{"1"}}); err != nil {
		fmt.Println(err)
		return
	}

	desc, err := store.Resolve(ctx, "1")
	if err != nil {
		fmt.Println(err)
		return
	}
	back, err := convert.Open(ctx, store, desc, convert.OpenOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer back.Close()
	fmt.Println(back.Manifest().ModelHash() == src.Manifest().ModelHash())
	members, err := back.Members(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range members {
		fmt.Println(m.Path, m.Place)
	}
	// Output:
	// true
	// carton.toml blob
	// model/main.py blob
	// model/model.bin blob
}

func ExampleBuild() {
	src := cartontest.New(map[string][]byte{
		"model/model.bin":   bytes.Repeat([]byte("w"), 1000),
		"model/main.py":     []byte("print()"),
		"model/__init__.py": nil,
	}, nil)
	forms, err := convert.Build(context.Background(), src, convert.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, l := range forms.Artifact.Layers {
		fmt.Println(l.Name, forms.Paths[i])
	}
	// Output:
	// MANIFEST [MANIFEST]
	// carton.toml [carton.toml]
	// .bundles/code-1.tar [model/__init__.py]
	// model/main.py [model/main.py]
	// model/model.bin [model/model.bin]
}

func ExampleThinLinks() {
	ctx := context.Background()
	src := cartontest.New(map[string][]byte{"model/model.bin": []byte("weights")}, nil)
	store := layout.FromTarget(memory.New())
	forms, err := convert.Build(ctx, src, convert.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := layout.Push(ctx, store, forms.Artifact, layout.PushOptions{Tags: []string{"1"}}); err != nil {
		fmt.Println(err)
		return
	}
	back, err := convert.Open(ctx, store, forms.Artifact.Descriptor, convert.OpenOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer back.Close()
	links, err := convert.ThinLinks(ctx, back, func(d digest.Digest) string {
		return "https://registry.example/v2/m/blobs/" + d.String()
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for hash, urls := range links.URLs {
		fmt.Println(hash[:12], urls[0][:52])
	}
	// Output:
	// 9a129038d9a0 https://registry.example/v2/m/blobs/sha256:9a129038d
}
