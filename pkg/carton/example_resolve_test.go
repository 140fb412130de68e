package carton_test

import (
	"context"
	"fmt"
	"io"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

func ExampleLinks_Marshal() {
	l := carton.Links{URLs: map[string][]string{
		"e550f6224a5133f597d823ab4590f369e0b20e3c6446488225fc6f7a372b9fe2": {"https://example.com/model.pt"},
	}}
	fmt.Printf("%s", l.Marshal())
	// Output:
	// version = 1
	//
	// [urls]
	// e550f6224a5133f597d823ab4590f369e0b20e3c6446488225fc6f7a372b9fe2 = ["https://example.com/model.pt"]
}

// A thin carton reads like a whole one once its links are followed.
func ExampleResolve() {
	read := func(ctx context.Context, name, member string, w io.Writer) error {
		src, err := carton.Open(name)
		if err != nil {
			return err
		}
		// Links lead to public hosts over https, and to those named here.
		src = carton.Resolve(src, carton.NewLinkFetcher(carton.LinkOptions{
			AllowHosts: []string{"models.internal:8443"},
		}))
		defer src.Close()
		r, err := src.Open(ctx, member)
		if err != nil {
			return err
		}
		defer r.Close()
		_, err = io.Copy(w, r) // nil only if the content had the hash that MANIFEST lists
		return err
	}
	err := read(context.Background(), "thin.carton", "model/model.safetensors", io.Discard)
	fmt.Println(err)
	// Output: stat thin.carton: no such file or directory
}
