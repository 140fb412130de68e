package convert_test

import (
	"context"
	"fmt"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/convert"
)

func ExampleBuild_image() {
	src := cartontest.New(map[string][]byte{"model/model.bin": []byte("weights"), "model/main.py": []byte("print()")}, nil)
	forms, err := convert.Build(context.Background(), src, convert.Options{Image: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, l := range forms.Artifact.Layers {
		fmt.Println("artifact", l.MediaType, forms.Paths[i])
	}
	for _, l := range forms.Image.Layers {
		fmt.Println("image   ", l.MediaType, l.Name)
	}
	fmt.Println("shared:", forms.Shared)
	// Output:
	// artifact application/vnd.cnai.model.weight.config.v1.raw [MANIFEST]
	// artifact application/vnd.cnai.model.weight.config.v1.raw [carton.toml]
	// artifact application/vnd.cnai.model.weight.v1.tar [model/model.bin]
	// artifact application/vnd.cnai.model.code.v1.tar [model/main.py]
	// image    application/vnd.oci.image.layer.v1.tar .bundles/carton.tar
	// image    application/vnd.oci.image.layer.v1.tar .bundles/weight-1.tar
	// image    application/vnd.oci.image.layer.v1.tar .bundles/code-1.tar
	// shared: true
}
