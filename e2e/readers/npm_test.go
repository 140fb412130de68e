package readers

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/carton-oci/carton-oci/internal/hubtest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/modelfile/gguf"
)

// What is installed from npm: the hub's own readers, and a llama.cpp that was built by
// others.
var packages = []string{"@huggingface/hub@2.17.5", "@huggingface/gguf@0.4.6", "node-llama-cpp@3.22.1", "@node-llama-cpp/linux-x64@3.22.1"}

// node runs scripts that import those packages.
func node(t *testing.T) func(t *testing.T, script string, args ...string) map[string]any {
	t.Helper()
	testenv.Program(t, "node")
	testenv.Program(t, "npm")
	dir := t.TempDir()
	run := func(t *testing.T, name string, args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		return out
	}
	run(t, "npm", append([]string{"install", "--no-audit", "--no-fund", "--ignore-scripts", "--omit=optional"}, packages...)...)
	return func(t *testing.T, script string, args ...string) map[string]any {
		t.Helper()
		name := filepath.Join(dir, "ask.mjs")
		if err := os.WriteFile(name, []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
		var says map[string]any
		if err := json.Unmarshal(run(t, "node", append([]string{name}, args...)...), &says); err != nil {
			t.Fatal(err)
		}
		return says
	}
}

// serve makes a repository of a hub of the files in a folder.
func serve(t *testing.T, h *hubtest.Hub, name, dir string) {
	t.Helper()
	var files []hubtest.File
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, hubtest.File{Path: e.Name(), Content: string(b), Large: filepath.Ext(e.Name()) != ".json"})
	}
	h.Commit(name, files...)
}

// written puts a file into a folder of its own.
func written(t *testing.T, name string, data []byte) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestProgramsFromNPM(t *testing.T) {
	ask := node(t)
	h := hubtest.New(t, hubtest.Config{})

	// The hub's own reader of safetensors, as it shows models on its pages.
	whole := tensorsOf(t)
	dir := cut(t, "model.safetensors", whole, 8000)
	serve(t, h, "org/whole", written(t, "model.safetensors", whole))
	serve(t, h, "org/cut", dir)
	says := ask(t, `
import { parseSafetensorsMetadata } from "@huggingface/hub";
const [hubUrl] = process.argv.slice(2);
const read = async (repo) => {
  const m = await parseSafetensorsMetadata({ repo, hubUrl, computeParametersCount: true });
  const tensors = {};
  for (const h of m.sharded ? Object.values(m.headers) : [m.header])
    for (const [name, x] of Object.entries(h)) if (name !== "__metadata__") tensors[name] = x.dtype + x.shape;
  return { sharded: m.sharded, total: m.parameterTotal, files: m.filepaths.length, tensors };
};
console.log(JSON.stringify({ whole: await read("org/whole"), cut: await read("org/cut") }));`, h.URL)
	one, many := says["whole"].(map[string]any), says["cut"].(map[string]any)
	if one["sharded"] != false || many["sharded"] != true || many["files"].(float64) < 5 || one["total"] != many["total"] || !same(one["tensors"], many["tensors"]) {
		t.Errorf("@huggingface/hub: got\n%v\nwant\n%v", many, one)
	}

	// The hub's own reader of GGUF, over all parts; what it finds in one file is what is
	// found here.
	data := llama(t)
	dir = cut(t, "tiny.gguf", data, 150_000)
	serve(t, h, "org/parts", dir)
	parts, _ := filepath.Glob(filepath.Join(dir, "*.gguf"))
	says = ask(t, `
import { gguf, ggufAllShards } from "@huggingface/gguf";
const [whole, first] = process.argv.slice(2);
const list = (xs) => Object.fromEntries(xs.map((x) => [x.name, x.dtype + ":" + x.shape.join()]));
const one = await gguf(whole, { allowLocalFile: true });
const all = await ggufAllShards(first);
console.log(JSON.stringify({ one: list(one.tensorInfos), all: list(all.shards.flatMap((s) => s.tensorInfos)), shards: all.shards.length,
  name: all.shards[0].metadata["general.name"], count: all.parameterCount, start: Number(one.tensorDataOffset) }));`,
		filepath.Join(written(t, "tiny.gguf", data), "tiny.gguf"), h.URL+"/org/parts/resolve/main/"+filepath.Base(parts[0]))
	head, err := gguf.ReadHeader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if int(says["shards"].(float64)) != len(parts) || says["name"] != "Tiny" || !same(says["one"], says["all"]) || int64(says["start"].(float64)) != head.DataStart ||
		len(says["one"].(map[string]any)) != len(head.Tensors) {
		t.Errorf("@huggingface/gguf: got %v; %d tensors from %d are found here", says, len(head.Tensors), head.DataStart)
	}

	// llama.cpp itself loads the parts, weights and all.
	says = ask(t, `
import { getLlama, LlamaLogLevel } from "node-llama-cpp";
const [whole, first] = process.argv.slice(2);
const llama = await getLlama({ gpu: false, build: "never", progressLogs: false, logLevel: LlamaLogLevel.error, logger: (l, m) => console.error(m) });
const load = async (modelPath) => { const m = await llama.loadModel({ modelPath }); return { size: m.size, context: m.trainContextSize }; };
console.log(JSON.stringify({ whole: await load(whole), parts: await load(first) }));
process.exit(0);`, filepath.Join(written(t, "tiny.gguf", data), "tiny.gguf"), parts[0])
	if !same(says["whole"], says["parts"]) || says["parts"].(map[string]any)["context"] != 128.0 {
		t.Errorf("llama.cpp: got %v", says)
	}
}

func same(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}
