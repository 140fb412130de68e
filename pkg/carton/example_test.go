package carton_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// exampleCarton stands for a carton on the disk.
func exampleCarton() carton.Source {
	return cartontest.New(map[string][]byte{
		"model/model.pt":         []byte("weights"),
		"tensor_data/index.toml": []byte("tensor = []\n"),
	}, nil)
}

// exampleFile writes exampleCarton to a folder of its own.
func exampleFile(name string) string {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	name = filepath.Join(dir, name)
	if err := carton.Assemble(context.Background(), name, exampleCarton(), carton.AssembleOptions{}); err != nil {
		log.Fatal(err)
	}
	return name
}

func ExampleOpen() {
	ctx := context.Background()
	src, err := carton.Open(exampleFile("m.carton"))
	if err != nil {
		log.Fatal(err)
	}
	members, err := src.Members(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("model hash", src.Manifest().ModelHash())
	for _, m := range members {
		fmt.Println(m.Path, m.Size, m.Place)
	}
	if err := src.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// model hash 67f89fccc3ffa413c9b461b0786ee4197785b11c47fdc9a8f005d2a5fe255a0f
	// carton.toml 197 stored
	// model/model.pt 7 stored
	// tensor_data/index.toml 12 stored
}

func ExampleReadInfo() {
	info, err := carton.ReadInfo(context.Background(), exampleCarton())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.ModelName, "runs on", info.Runner.Name, info.Runner.RequiredFrameworkVersion)
	// Output: test runs on torchscript *
}

func ExampleVerify() {
	report, err := carton.Verify(context.Background(), exampleCarton(), carton.VerifyOptions{})
	if err != nil {
		log.Fatal(err) // it could not be read
	}
	for _, f := range report.Findings {
		fmt.Println(f.Severity, f.Err)
	}
	fmt.Println(report.OK(), report.Members, "members")
	// Output: true 3 members
}

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
