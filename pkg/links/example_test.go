package links_test

import (
	"context"
	"fmt"
	"io"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/links"
)

// A thin carton reads like a whole one once its links are followed.
func ExampleResolve() {
	read := func(ctx context.Context, name, member string, w io.Writer) error {
		src, err := carton.Open(name)
		if err != nil {
			return err
		}
		// Links lead to public hosts over https, and to those named here.
		src = links.Resolve(src, links.NewFetcher(links.Options{
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
