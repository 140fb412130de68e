package location_test

import (
	"fmt"

	"github.com/carton-oci/carton-oci/pkg/location"
)

func ExampleParse() {
	for _, s := range []string{"m.carton", "ghcr.io/org/m:1", "oci:layout:1", "https://example.com/m.carton"} {
		loc, err := location.Parse(s)
		if err != nil {
			panic(err)
		}
		fmt.Println(loc.IsArtifact(), loc)
	}
	// Output:
	// false m.carton
	// true ghcr.io/org/m:1
	// true oci:layout:1
	// false https://example.com/m.carton
}
