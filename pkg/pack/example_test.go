package pack_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/pack"
)

func ExampleOpen() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	weights := filepath.Join(dir, "weights.bin")
	if err := os.WriteFile(weights, []byte("weights"), 0o644); err != nil {
		panic(err)
	}

	ctx := context.Background()
	c, err := pack.Open(ctx, []string{weights}, pack.Options{Info: carton.Info{ModelName: "iris", Runner: carton.Runner{Name: "noop"}}})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	for _, f := range c.Filled {
		fmt.Println(f.Field, "=", f.Value)
	}
	// Or push it, with no file between: client.PushSource.
	if err := carton.Assemble(ctx, filepath.Join(dir, "iris.carton"), c, carton.AssembleOptions{}); err != nil {
		panic(err)
	}
	fmt.Print(string(c.Manifest().Bytes()))
	// Output:
	// runner.required_framework_version = *
	// runner.runner_compat_version = 1
	// carton.toml=caa538ad6042aa77e6e44dec370ab23a24cb479f06e9ca5aab88bff161183fbd
	// model/weights.bin=9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c
	// tensor_data/index.toml=b7166da732031b2102f9b7cde01e74b15aecffdd128bbf0a6846d49c7f02351e
}
