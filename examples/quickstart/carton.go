package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/pack"
)

// static holds the files of the carton that training doesn't make: what the
// model is, and the code that runs it.
//
//go:embed all:carton
var static embed.FS

// writeCarton writes an unpacked carton into dir, which it creates, and returns
// its model hash. The self test is what the network says about the flowers of
// test.
func writeCarton(ctx context.Context, dir string, n *network, test []flower) (string, error) {
	if _, err := os.Lstat(dir); err == nil {
		return "", fmt.Errorf("write carton: %s exists", dir)
	}
	files, err := fs.Sub(static, "carton")
	if err != nil {
		return "", err
	}
	if err := os.CopyFS(dir, files); err != nil {
		return "", err
	}
	weights, err := n.safetensors()
	if err != nil {
		return "", err
	}
	made := map[string][]byte{
		"model/iris.safetensors": weights,
		"tensor_data/index.toml": []byte(index(len(test))),
	}
	made["tensor_data/flowers.bin"], made["tensor_data/scores.bin"] = n.selfTest(test)
	for name, content := range made {
		if err := writeFile(filepath.Join(dir, filepath.FromSlash(name)), content); err != nil {
			return "", err
		}
	}
	packed, err := pack.Open(ctx, []string{dir}, pack.Options{})
	if err != nil {
		return "", err
	}
	defer packed.Close()
	manifest := packed.Manifest()
	return manifest.ModelHash(), writeFile(filepath.Join(dir, carton.ManifestName), manifest.Bytes())
}

// selfTest returns measurements and the scores that the network gives them,
// as the two files of tensor_data: little-endian float32 in C order.
func (n *network) selfTest(flowers []flower) (measurements, scores []byte) {
	for _, f := range flowers {
		for j, v := range f.x {
			measurements = appendFloat32(measurements, v)
			f.x[j] = float64(float32(v))
		}
		for _, v := range n.run(f.x).scores {
			scores = appendFloat32(scores, v)
		}
	}
	return measurements, scores
}

// index is tensor_data/index.toml for a self test of rows flowers.
func index(rows int) string {
	return fmt.Sprintf(`[[tensor]]
name = "flowers"
dtype = "float32"
shape = [%[1]d, %[2]d]
file = "flowers.bin"
inner = []

[[tensor]]
name = "scores"
dtype = "float32"
shape = [%[1]d, %[3]d]
file = "scores.bin"
inner = []
`, rows, features, classes)
}

func writeFile(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, content, 0o644)
}
