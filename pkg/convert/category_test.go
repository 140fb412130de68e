package convert

import "testing"

func TestCategoryByPath(t *testing.T) {
	for path, want := range map[string]category{
		"MANIFEST":                       categoryConfig,
		"carton.toml":                    categoryConfig,
		"tensor_data/index.toml":         categoryDataset,
		"tensor_data/tensor_0.bin":       categoryDataset,
		"misc/model.safetensors":         categoryDoc,
		"misc/config.json":               categoryDoc,
		"elsewhere.json":                 categoryDoc,
		"MANIFEST2":                      categoryDoc,
		"models/config.json":             categoryDoc,
		"model/config.json":              categoryConfig,
		"model/tokenizer.MODEL":          categoryConfig,
		"model/deep/down/vocab.txt":      categoryConfig,
		"model/README":                   categoryDoc,
		"model/Readme.html":              categoryDoc,
		"model/LICENSE-APACHE":           categoryDoc,
		"model/NOTICE.json":              categoryDoc, // the first rule that fits
		"model/license_plates.onnx":      categoryWeight,
		"model/a.MD":                     categoryDoc,
		"model/main.py":                  categoryCode,
		"model/x.PYC":                    categoryCode,
		"model/lib/py.typed":             categoryCode,
		"model/x-1.0.dist-info/RECORD":   categoryConfig,
		"model/x-1.0.dist-info/METADATA": categoryConfig,
		"model/x-1.0.dist-info/WHEEL":    categoryConfig,
		"model/RECORDS":                  categoryWeight,
		"model/model.safetensors":        categoryWeight,
		"model/pytorch_model.BIN":        categoryWeight,
		"model/model.pt2":                categoryWeight,
		"model/rust_model.ot":            categoryWeight,
		"model/Europe/Berlin":            categoryWeight,
		"model/.gitattributes":           categoryWeight,
		"model/.py":                      categoryCode,
		"model/model.K":                  categoryWeight, // U+212A is no K
	} {
		if got := categoryOf(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

func TestWeightsByNameOrSize(t *testing.T) {
	for _, c := range []struct {
		path string
		size int64
		want bool
	}{
		{"model/model.safetensors", 1, true},
		{"model/a.bin", 0, true},
		{"tensor_data/a.bin", 1 << 30, false},
		{"misc/model.pt", 1 << 30, false},
		{"model/main.py", 1 << 30, false},
		{"model/blobs/8c1f", largeBytes - 1, false},
		{"model/blobs/8c1f", largeBytes, true},
		{"blobs/8c1f", largeBytes, false},
	} {
		if got := isWeight(c.path, c.size); got != c.want {
			t.Errorf("%s of %d bytes: got %v, want %v", c.path, c.size, got, c.want)
		}
	}
}
