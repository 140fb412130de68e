package convert

import (
	"bytes"

	"github.com/carton-oci/carton-oci/internal/cartontest"
)

// fullInfo has every field that reaches the artifact.
const fullInfo = `spec_version = 1
model_name = "Café <3 & more"
short_description = "A model for tests"
model_description = "Long."
license = "Apache-2.0 OR MIT"
repository = "https://example.com/repo"
homepage = "https://example.com/home"
required_platforms = ["x86_64-unknown-linux-gnu", "aarch64-apple-darwin"]

[runner]
runner_name = "python"
required_framework_version = ">=3.10, <3.13"
runner_compat_version = 1
`

// kindsOfMembers is a carton with every kind of member that the mapping tells
// apart.
func kindsOfMembers() (files map[string][]byte, symlinks map[string]string) {
	files = map[string][]byte{
		"carton.toml":                []byte(fullInfo),
		"model/README.md":            []byte("# A model\n"),
		"model/config.json":          []byte("{}\n"),
		"model/main.py":              []byte("print()\n"),
		"model/__init__.py":          nil,
		"model/.hidden":              nil,
		"model/weights-1.bin":        bytes.Repeat([]byte("w"), 5000),
		"model/weights-2.bin":        bytes.Repeat([]byte("v"), 3000),
		"model/same.bin":             bytes.Repeat([]byte("w"), 5000),
		"model/blobs/0123":           []byte("a blob with a hash for a name"),
		"model/a=b & c<d>.json":      []byte("odd name"),
		"model/\u00fcml\u00e4ut.txt": []byte("not ASCII"),
		"tensor_data/index.toml":     []byte("tensor = []\n"),
		"misc/image.png":             []byte("no image"),
		"elsewhere/file":             []byte("in no known folder"),
	}
	symlinks = map[string]string{
		"model/link.json":           "config.json",
		"model/snapshots/1/w.bin":   "../../weights-1.bin",
		"model/snapshots/1/b.json":  "../../blobs/0123",
		"model/snapshots/latest.py": "../__init__.py",
		"model/chain.json":          "link.json",
	}
	return files, symlinks
}

func kinds(opts ...cartontest.Option) *cartontest.Source {
	files, symlinks := kindsOfMembers()
	return cartontest.New(files, symlinks, opts...)
}
