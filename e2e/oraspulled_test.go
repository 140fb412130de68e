package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/file"
)

// The promise: a folder that oras pulled is a carton once its bundles are
// unpacked, and the error for one where they are not has the command.
func TestFolderThatOrasPulled(t *testing.T) {
	u := newUser(t)
	s := testregistry.Start(t, testregistry.Options{})
	c := newModel(map[string]string{
		"model/weights.bin": random("weights", 64<<10), "model/config.json": "{}", "model/tokenizer.json": "[]",
		"tensor_data/index.toml": "tensor = []\n",
	})
	c.write(t, u.path("m.carton"))
	ref := s.Host + "/org/m:1"
	u.push(t, "m.carton", ref, "--bundle-below", "16K") // which is 16KiB
	src := orasRepository(t, ref)
	dir := u.path("pulled")
	store, err := file.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := oras.Copy(t.Context(), src, src.Reference.Reference, store, "1", oras.DefaultCopyOptions); err != nil {
		t.Fatal(err)
	}
	if found, _ := filepath.Glob(filepath.Join(dir, ".bundles", "*.tar")); len(found) == 0 {
		t.Fatal("no bundles: this proves nothing")
	}
	r := u.run(t, "verify", dir)
	checkError(t, r, badCase{code: badContent, want: []string{"neither in the folder nor in LINKS"}, hint: "tar -xf"})
	_, command, ok := strings.Cut(r.stderr, "in the folder: ")
	if !ok {
		t.Fatalf("no command:\n%s", r.stderr)
	}
	shell := exec.CommandContext(t.Context(), "sh", "-c", strings.TrimSpace(command))
	shell.Dir = dir
	if out, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	u.must(t, "verify", dir)
	if got := u.push(t, dir, s.Host+"/org/again:1"); got.ModelHash != c.hash() {
		t.Errorf("got model hash %s, want %s", got.ModelHash, c.hash())
	}
}
