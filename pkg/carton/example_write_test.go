package carton_test

import (
	"context"
	"fmt"
	"hash/crc32"
	"log"
	"os"
	"path/filepath"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// Any source becomes the one canonical zip of its members.
func ExampleAssemble() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	src := cartontest.New(map[string][]byte{"model/weights": []byte("…")}, nil) // or carton.Open(name)
	name := filepath.Join(dir, "m.carton")
	if err := carton.Assemble(context.Background(), name, src, carton.AssembleOptions{}); err != nil {
		log.Fatal(err)
	}
	m, err := carton.Open(name)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("same model:", m.Manifest().ModelHash() == src.Manifest().ModelHash())

	_ = m.Close()
	_ = os.RemoveAll(dir)
	// Output: same model: true
}

// Only what a program needs, with model/ as the root.
func ExampleExtract() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	src := cartontest.New(map[string][]byte{ // or carton.Open(name)
		"model/weights":     []byte("…"),
		"model/config.json": []byte("{}"),
		"model/README.md":   []byte("# Model"),
	}, nil)
	out := filepath.Join(dir, "model")
	err = carton.Extract(context.Background(), out, src, carton.ExtractOptions{Folder: "model", Exclude: []string{"*.md"}})
	if err != nil {
		log.Fatal(err)
	}
	entries, err := os.ReadDir(out)
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range entries {
		fmt.Println(e.Name())
	}

	_ = os.RemoveAll(dir)
	// Output:
	// config.json
	// weights
}

// A plan says where everything is before anything is read.
func ExampleNewPlan() {
	content := []byte("weights")
	plan, err := carton.NewPlan([]carton.Member{{Path: "model/weights", Size: int64(len(content))}})
	if err != nil {
		log.Fatal(err)
	}
	off, n, _ := plan.Extent("model/weights")
	fmt.Printf("%d of the zip's %d bytes are the content, from %d\n", n, plan.Size(), off)

	if err := plan.SetCRC("model/weights", crc32.ChecksumIEEE(content)); err != nil {
		log.Fatal(err)
	}
	header, err := plan.Header(0)
	if err != nil {
		log.Fatal(err)
	}
	tail, err := plan.Tail()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("header, content and tail:", len(header)+len(content)+len(tail), "bytes")
	// Output:
	// 7 of the zip's 152 bytes are the content, from 64
	// header, content and tail: 152 bytes
}
