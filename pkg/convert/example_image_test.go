package convert_test

import (
	"context"
	"fmt"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/convert"
)

func ExampleBuildForms() {
	src := cartontest.New(map[string][]byte{"model/model.bin": []byte("weights"), "model/main.py": []byte("print()")}, nil)
	forms, err := convert.BuildForms(context.Background(), src, convert.Options{Image: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, l := range forms.Artifact.Layers {
		fmt.Println("artifact", l.MediaType, forms.Layers[i].Paths)
	}
	for i, l := range forms.Image.Layers {
		fmt.Println("image   ", l.MediaType, forms.ImageLayers[i].Paths)
	}
	fmt.Println("shared:", forms.Artifact.Layers[2].Digest == forms.Image.Layers[1].Digest)
	// Output:
	// artifact application/vnd.cnai.model.weight.config.v1.raw [MANIFEST]
	// artifact application/vnd.cnai.model.weight.config.v1.raw [carton.toml]
	// artifact application/vnd.cnai.model.weight.v1.tar [model/model.bin]
	// artifact application/vnd.cnai.model.code.v1.tar [model/main.py]
	// image    application/vnd.oci.image.layer.v1.tar [MANIFEST carton.toml]
	// image    application/vnd.oci.image.layer.v1.tar [model/model.bin]
	// image    application/vnd.oci.image.layer.v1.tar [model/main.py]
	// shared: true
}
